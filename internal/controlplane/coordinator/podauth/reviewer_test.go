package podauth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	clienttesting "k8s.io/client-go/testing"
)

// knownPods are those named web-0, whatever their UID.
type knownPods struct{}

func (knownPods) Knows(_ context.Context, id Identity) (bool, error) {
	if id.Pod == "unsure" {
		return false, errors.New("not synced")
	}
	return id.Namespace == "shop" && id.Pod == "web-0", nil
}

// tokenOf returns a JSON Web Token with the claims, which nobody signed.
func tokenOf(claims, signature string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + signature
}

// webToken claims to be of the pod that bound is the answer for.
func webToken(signature string) string { return podToken("uid", signature) }

func podToken(uid, signature string) string {
	return tokenOf(fmt.Sprintf(`{"aud":["weir.dev"],"exp":%d,"kubernetes.io":{"namespace":"shop","pod":{"name":"web-0","uid":%q}}}`,
		time.Now().Add(time.Hour).Unix(), uid), signature)
}

// reviewing returns a reviewer whose API server gives the answer, and how often
// it was asked.
func reviewing(t *testing.T, answer authenticationv1.TokenReviewStatus, failure error) (*Reviewer, *int) {
	t.Helper()
	client, asked := fake.NewClientset(), new(int)
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		*asked++
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		if len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != Audience {
			t.Errorf("audiences = %v, want %s", review.Spec.Audiences, Audience)
		}
		review.Status = answer
		return true, review, failure
	})
	return NewReviewer(client.AuthenticationV1().TokenReviews(), knownPods{}, nil), asked
}

// bound is the answer for a token that is bound to shop/web-0.
func bound() authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{
		Authenticated: true,
		Audiences:     []string{Audience},
		User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:shop:default",
			Extra: map[string]authenticationv1.ExtraValue{
				podNameKey: {"web-0"}, podUIDKey: {"uid"},
			},
		},
	}
}

func TestReviewer(t *testing.T) {
	tests := map[string]struct {
		change func(*authenticationv1.TokenReviewStatus)
		fails  error
		want   Identity
		refuse bool
	}{
		"a token bound to a pod": {want: Identity{"shop", "web-0", "uid"}},
		"a token that is expired, of another cluster or of a deleted pod": {
			change: func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false }, refuse: true,
		},
		"a token for another audience": {
			change: func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"kubernetes"} }, refuse: true,
		},
		"an API server that knows no audiences": {
			change: func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil }, refuse: true,
		},
		"a user that is not a service account": {
			change: func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccountant:shop:x" }, refuse: true,
		},
		"a service account without a namespace": {
			change: func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount::default" }, refuse: true,
		},
		"a token that is bound to no pod": {
			change: func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil }, refuse: true,
		},
		"a token with two pods": {
			change: func(s *authenticationv1.TokenReviewStatus) {
				s.User.Extra[podUIDKey] = authenticationv1.ExtraValue{"uid", "other"}
			}, refuse: true,
		},
		"an API server that does not answer": {fails: errors.New("connection refused")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			answer := bound()
			if tc.change != nil {
				tc.change(&answer)
			}
			r, _ := reviewing(t, answer, tc.fails)
			got, err := r.Authenticate(t.Context(), webToken("signature"))
			if got != tc.want {
				t.Errorf("identity = %+v, want %+v", got, tc.want)
			}
			if refused := errors.Is(err, ErrUnauthenticated); refused != tc.refuse || (err != nil) != (tc.refuse || tc.fails != nil) {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestAReviewerDecidesByKeysFirst(t *testing.T) {
	keys := NewKeys(nil, logr.Discard())
	if got := NewReviewer(nil, nil, keys).keys; got != keys {
		t.Errorf("it has the keys %p, want %p", got, keys)
	}
}

func TestAnswersAreRememberedForAWhile(t *testing.T) {
	tests := map[string]struct {
		answer authenticationv1.TokenReviewStatus
		fails  error
		lasts  time.Duration
	}{
		"accepted": {answer: bound(), lasts: acceptedFor},
		"refused":  {lasts: refusedFor},
		"failed":   {fails: errors.New("connection refused")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, asked := reviewing(t, tc.answer, tc.fails)
				token := webToken("signature")
				first, why := r.Authenticate(t.Context(), token)
				ask := func(want int) {
					t.Helper()
					id, err := r.Authenticate(t.Context(), token)
					if *asked != want {
						t.Errorf("asked %d times, want %d", *asked, want)
					}
					if id != first || (err == nil) != (why == nil) || errors.Is(err, ErrUnauthenticated) != errors.Is(why, ErrUnauthenticated) {
						t.Errorf("answer %+v, error %v; want %+v, %v as at first", id, err, first, why)
					}
				}
				if tc.lasts > 0 {
					time.Sleep(tc.lasts - time.Nanosecond)
					ask(1)
				}
				time.Sleep(time.Nanosecond)
				ask(2)
			})
		})
	}
}

func TestTokensAreNotConfused(t *testing.T) {
	r, asked := reviewing(t, bound(), nil)
	for i := range 3 {
		if _, err := r.Authenticate(t.Context(), webToken(fmt.Sprint(i))); err != nil {
			t.Error(err)
		}
	}
	if *asked != 3 {
		t.Errorf("asked %d times, want 3", *asked)
	}
}

// TestWhatCannotBeAcceptedIsNotReviewed, so that it costs no call.
func TestWhatCannotBeAcceptedIsNotReviewed(t *testing.T) {
	now := time.Now()
	claims := func(audience string, expires time.Time, bound string) string {
		return tokenOf(fmt.Sprintf(`{"aud":%s,"exp":%d,"kubernetes.io":%s}`, audience, expires.Unix(), bound), "s")
	}
	const web = `{"namespace":"shop","pod":{"name":"web-0","uid":"uid"}}`
	soon := now.Add(time.Hour)
	tests := map[string]struct {
		token    string
		reviewed bool
		unsure   bool
	}{
		"a token as kubelets make it":                {token: claims(`["weir.dev"]`, soon, web), reviewed: true},
		"one audience that is not a list":            {token: claims(`"weir.dev"`, soon, web), reviewed: true},
		"several audiences":                          {token: claims(`["vault","weir.dev"]`, soon, web), reviewed: true},
		"a token that ended while clocks may differ": {token: claims(`["weir.dev"]`, now.Add(-clockSkew/2), web), reviewed: true},
		"another audience":                           {token: claims(`["https://kubernetes.default.svc"]`, soon, web)},
		"no audience":                                {token: claims(`null`, soon, web)},
		"an audience that is not a string":           {token: claims(`7`, soon, web)},
		"expired":                                    {token: claims(`["weir.dev"]`, now.Add(-clockSkew-time.Minute), web)},
		"without an end":                             {token: tokenOf(`{"aud":["weir.dev"],"kubernetes.io":`+web+`}`, "s")},
		"no pod":                                     {token: claims(`["weir.dev"]`, soon, `{"namespace":"shop"}`)},
		"a pod without UID":                          {token: claims(`["weir.dev"]`, soon, `{"namespace":"shop","pod":{"name":"web-0"}}`)},
		"a pod without namespace":                    {token: claims(`["weir.dev"]`, soon, `{"pod":{"name":"web-0","uid":"uid"}}`)},
		"a pod that is not there":                    {token: claims(`["weir.dev"]`, soon, `{"namespace":"shop","pod":{"name":"web-1","uid":"uid"}}`)},
		"a pod that may be there or not":             {token: claims(`["weir.dev"]`, soon, `{"namespace":"shop","pod":{"name":"unsure","uid":"uid"}}`), unsure: true},
		"not three parts":                            {token: "token"},
		"four parts":                                 {token: claims(`["weir.dev"]`, soon, web) + ".s"},
		"not base64":                                 {token: "e30.!.s"},
		"not JSON":                                   {token: tokenOf("{", "s")},
		"too long":                                   {token: webToken(strings.Repeat("s", maxToken))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, asked := reviewing(t, bound(), nil)
			_, err := r.Authenticate(t.Context(), tc.token)
			if reviewed := *asked == 1; reviewed != tc.reviewed || (err == nil) != tc.reviewed {
				t.Errorf("reviewed = %t, want %t; error = %v", reviewed, tc.reviewed, err)
			}
			if err != nil && errors.Is(err, ErrUnauthenticated) == tc.unsure {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestATokenOfAnotherPodThanItClaimsIsRefused(t *testing.T) {
	r, _ := reviewing(t, bound(), nil)
	if id, err := r.Authenticate(t.Context(), podToken("other", "s")); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("identity = %v, error = %v", id, err)
	}
}

// TestOnePodsTokensTakeNoReviewsFromOthers, however many there are.
func TestOnePodsTokensTakeNoReviewsFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		answer := make(chan struct{})
		r := NewReviewer(slow{asked: &asked, answer: answer}, knownPods{}, nil)
		var flood sync.WaitGroup
		var crowded atomic.Int64
		for i := range 10 * maxReviews {
			flood.Go(func() {
				if _, err := r.Authenticate(t.Context(), podToken("flood", fmt.Sprint(i))); errors.Is(err, ErrCrowded) {
					crowded.Add(1)
				}
			})
		}
		synctest.Wait()
		if asked.Load() != 1 || crowded.Load() != 10*maxReviews-1 {
			t.Errorf("%d reviews of one pod's tokens are under way, %d are refused", asked.Load(), crowded.Load())
		}
		flood.Go(func() {
			if _, err := r.Authenticate(t.Context(), webToken("s")); err != nil {
				t.Errorf("another pod: %v", err)
			}
		})
		synctest.Wait()
		if asked.Load() != 2 {
			t.Error("another pod's token is not reviewed meanwhile")
		}
		close(answer)
		flood.Wait()
	})
}

// TestAFleetIsReviewedInItsTurn holds a change of leader at 5,000 sidecars: an API server
// that needs 20 ms for a review refuses none of them its place.
func TestAFleetIsReviewedInItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReviewer(steady{20 * time.Millisecond}, knownPods{}, nil)
		var fleet sync.WaitGroup
		for i := range 5000 {
			fleet.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 18*time.Second) // as long as a stream waits
				defer cancel()
				uid := fmt.Sprint(i)
				if id, err := r.Authenticate(ctx, podToken(uid, "s")); err != nil || id.PodUID != uid {
					t.Errorf("pod %d: %v, %v", i, id, err)
				}
			})
		}
		fleet.Wait()
	})
}

// steady answers each review after a while: the token is bound to the pod that it claims.
type steady struct{ takes time.Duration }

func (s steady) Create(_ context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	time.Sleep(s.takes) // of a synctest bubble
	id, err := claimed(r.Spec.Token, time.Now())
	r.Status = bound()
	r.Status.User.Extra[podUIDKey] = authenticationv1.ExtraValue{id.PodUID}
	return r, err
}

// slow answers that a token is bound to shop/web-0, once the test lets it.
type slow struct {
	authenticationclient.TokenReviewInterface
	asked  *atomic.Int64
	answer chan struct{}
}

func (s slow) Create(_ context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	s.asked.Add(1)
	<-s.answer
	r.Status = bound()
	return r, nil
}

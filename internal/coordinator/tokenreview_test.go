package coordinator

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// reviewing returns a reviewer whose API server gives the answer, and how often
// it was asked.
func reviewing(t *testing.T, answer authenticationv1.TokenReviewStatus, failure error) (*TokenReviewer, *int) {
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
	return NewTokenReviewer(client.AuthenticationV1().TokenReviews()), asked
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

func TestTokenReviewer(t *testing.T) {
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
		"a user that is no service account": {
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
			got, err := r.Authenticate(t.Context(), "token")
			if got != tc.want {
				t.Errorf("identity = %+v, want %+v", got, tc.want)
			}
			if refused := errors.Is(err, ErrUnauthenticated); refused != tc.refuse || (err != nil) != (tc.refuse || tc.fails != nil) {
				t.Errorf("error = %v", err)
			}
		})
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
				ask := func(want int) {
					t.Helper()
					_, _ = r.Authenticate(t.Context(), "token")
					if *asked != want {
						t.Errorf("asked %d times, want %d", *asked, want)
					}
				}
				ask(1)
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

func TestRememberedAnswersAreBounded(t *testing.T) {
	r, _ := reviewing(t, bound(), nil)
	for i := range maxTokens + 100 {
		r.remember([32]byte{byte(i), byte(i >> 8)}, answer{until: time.Now().Add(time.Hour)})
	}
	if len(r.answers) > maxTokens {
		t.Errorf("%d answers are held, at most %d should be", len(r.answers), maxTokens)
	}
}

func TestTokensAreNotConfused(t *testing.T) {
	r, asked := reviewing(t, bound(), nil)
	for i := range 3 {
		if _, err := r.Authenticate(t.Context(), fmt.Sprint("token", i)); err != nil {
			t.Error(err)
		}
	}
	if *asked != 3 {
		t.Errorf("asked %d times, want 3", *asked)
	}
}

package podauth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/connlimit"
)

// Audience is what a sidecar's token must be made for.
const Audience = "weir.dev"

// Bounds of a Reviewer.
const (
	acceptedFor    = 5 * time.Minute // a deleted pod's token may live on for that long
	refusedFor     = 10 * time.Second
	reviewTimeout  = 5 * time.Second
	maxReviews     = 32 // under way at the same time; others wait in the order they came
	serviceAccount = "system:serviceaccount:"
	podNameKey     = "authentication.kubernetes.io/pod-name"
	podUIDKey      = "authentication.kubernetes.io/pod-uid"
)

// Pods say which pods there are. Knows reports whether there is one of that namespace,
// name and UID; an error means that this could not be found out.
type Pods interface {
	Knows(ctx context.Context, id Identity) (bool, error)
}

// A Reviewer is the Authenticator of a cluster's service-account tokens. It verifies
// a token by the keys that the cluster publishes, and the pod by the cache, so that a
// fleet that reconnects costs the API server nothing. Where the keys cannot decide, it
// asks the API server. It remembers those answers, by the token's digest. It does not ask
// about tokens that cannot be of one of the cluster's pods, or too often about those that
// claim to be of the same one.
type Reviewer struct {
	client  authenticationclient.TokenReviewInterface
	pods    Pods
	keys    *Keys
	answers *answers
	turns   *reviewTurns
	reviews chan struct{} // a token for each review under way
}

// NewReviewer returns a reviewer that asks through client. Without keys it asks about
// every token.
func NewReviewer(client authenticationclient.TokenReviewInterface, pods Pods, keys *Keys) *Reviewer {
	return &Reviewer{
		client:  client,
		pods:    pods,
		keys:    keys,
		answers: newAnswers(),
		turns:   newReviewTurns(),
		reviews: make(chan struct{}, maxReviews),
	}
}

// Authenticate returns the pod that the token is bound to.
func (r *Reviewer) Authenticate(ctx context.Context, token string) (Identity, error) {
	claim, err := r.claim(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	switch r.keys.verify(ctx, token, claim, time.Now()) {
	case verified:
		return claim, nil
	case forged:
		return Identity{}, fmt.Errorf("%w: the cluster did not sign it for that pod", ErrUnauthenticated)
	case undecided:
	}
	digest := sha256.Sum256([]byte(token))
	if a, ok := r.answers.of(digest, time.Now()); ok {
		return a.id, a.err
	}
	if !r.turns.begin(claim.PodUID, time.Now()) {
		return Identity{}, fmt.Errorf("%w: pod %s/%s", ErrCrowded, claim.Namespace, claim.Pod)
	}
	defer r.turns.end(claim.PodUID)
	defer connlimit.FromContext(ctx).Keep(connlimit.InReview)()
	select {
	case r.reviews <- struct{}{}:
		defer func() { <-r.reviews }()
	case <-ctx.Done():
		return Identity{}, fmt.Errorf("wait for a token review: %w", ctx.Err())
	}
	id, err := r.review(ctx, token)
	now := time.Now()
	switch {
	case err == nil && id != claim:
		return Identity{}, fmt.Errorf("%w: it claims to be of another pod than it is", ErrUnauthenticated)
	case err == nil:
		r.answers.add(digest, answer{id: id, until: now.Add(acceptedFor)}, now)
	case errors.Is(err, ErrUnauthenticated):
		r.answers.add(digest, answer{err: err, until: now.Add(refusedFor)}, now)
	}
	return id, err
}

// claim returns which of the cluster's pods the token claims to be of.
func (r *Reviewer) claim(ctx context.Context, token string) (Identity, error) {
	claim, err := claimed(token, time.Now())
	if err != nil {
		return Identity{}, err
	}
	known, err := r.pods.Knows(ctx, claim)
	if err != nil {
		return Identity{}, fmt.Errorf("look for pod %s/%s: %w", claim.Namespace, claim.Pod, err)
	}
	if !known { // or not yet: a sidecar tries again soon
		return Identity{}, fmt.Errorf("%w: its pod is not known to this controller", ErrUnauthenticated)
	}
	return claim, nil
}

func (r *Reviewer) review(ctx context.Context, token string) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := r.client.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("review the token: %w", err)
	}
	return identityOf(review.Status)
}

// identityOf reads the pod out of a review. An API server that knows nothing of
// audiences leaves them empty; its answer is not good enough.
func identityOf(s authenticationv1.TokenReviewStatus) (Identity, error) {
	if !s.Authenticated {
		return Identity{}, fmt.Errorf("%w: %s", ErrUnauthenticated, s.Error)
	}
	if !slices.Contains(s.Audiences, Audience) {
		return Identity{}, fmt.Errorf("%w: it is not for the audience %s", ErrUnauthenticated, Audience)
	}
	account, ok := strings.CutPrefix(s.User.Username, serviceAccount)
	namespace, _, named := strings.Cut(account, ":")
	if !ok || !named || namespace == "" {
		return Identity{}, fmt.Errorf("%w: %q is not a service account", ErrUnauthenticated, s.User.Username)
	}
	id := Identity{Namespace: namespace, Pod: one(s.User.Extra[podNameKey]), PodUID: one(s.User.Extra[podUIDKey])}
	if id.Pod == "" || id.PodUID == "" {
		return Identity{}, fmt.Errorf("%w: it is not bound to a pod", ErrUnauthenticated)
	}
	return id, nil
}

func one(values authenticationv1.ExtraValue) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

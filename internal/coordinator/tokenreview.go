package coordinator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// Audience is what a sidecar's token must be made for.
const Audience = "weir.dev"

// Bounds of a TokenReviewer.
const (
	acceptedFor    = 5 * time.Minute // a deleted pod's token may live on for that long
	refusedFor     = 10 * time.Second
	maxTokens      = 8192
	maxReviews     = 8 // under way at the same time
	serviceAccount = "system:serviceaccount:"
	podNameKey     = "authentication.kubernetes.io/pod-name"
	podUIDKey      = "authentication.kubernetes.io/pod-uid"
)

// A TokenReviewer is the Authenticator that asks the API server. It remembers
// answers, by the token's digest, so that reconnecting sidecars do not ask again.
type TokenReviewer struct {
	client  authenticationclient.TokenReviewInterface
	reviews chan struct{} // a token for each review under way

	mu      sync.Mutex
	answers map[[sha256.Size]byte]answer
}

type answer struct {
	id    Identity
	err   error
	until time.Time
}

// NewTokenReviewer returns a reviewer that asks through client.
func NewTokenReviewer(client authenticationclient.TokenReviewInterface) *TokenReviewer {
	return &TokenReviewer{
		client:  client,
		reviews: make(chan struct{}, maxReviews),
		answers: map[[sha256.Size]byte]answer{},
	}
}

// Authenticate returns the pod that the token is bound to.
func (r *TokenReviewer) Authenticate(ctx context.Context, token string) (Identity, error) {
	digest := sha256.Sum256([]byte(token))
	if a, ok := r.remembered(digest); ok {
		return a.id, a.err
	}
	select {
	case r.reviews <- struct{}{}:
		defer func() { <-r.reviews }()
	case <-ctx.Done():
		return Identity{}, fmt.Errorf("wait for a token review: %w", ctx.Err())
	}
	id, err := r.review(ctx, token)
	switch {
	case err == nil:
		r.remember(digest, answer{id: id, until: time.Now().Add(acceptedFor)})
	case errors.Is(err, ErrUnauthenticated):
		r.remember(digest, answer{err: err, until: time.Now().Add(refusedFor)})
	}
	return id, err
}

func (r *TokenReviewer) review(ctx context.Context, token string) (Identity, error) {
	review, err := r.client.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("review the token: %w", err)
	}
	return identityOf(review.Status)
}

// identityOf reads the pod out of a review. An API server that knows nothing of
// audiences leaves them empty; its word is not good enough.
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

func (r *TokenReviewer) remembered(digest [sha256.Size]byte) (answer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.answers[digest]
	return a, ok && time.Now().Before(a.until)
}

func (r *TokenReviewer) remember(digest [sha256.Size]byte, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) >= maxTokens {
		r.makeRoom()
	}
	r.answers[digest] = a
}

// makeRoom drops what is out of date or, when nothing is, whatever comes first.
func (r *TokenReviewer) makeRoom() {
	now := time.Now()
	for digest, a := range r.answers {
		if !now.Before(a.until) {
			delete(r.answers, digest)
		}
	}
	for digest := range r.answers {
		if len(r.answers) < maxTokens {
			return
		}
		delete(r.answers, digest)
	}
}

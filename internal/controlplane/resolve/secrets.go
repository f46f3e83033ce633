package resolve

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/pkg/policy"
)

// secretFreshFor is how long a Secret that was read stands: credentials that are
// rotated reach sidecars that late.
const secretFreshFor = 10 * time.Second

// secretKeptFor is how long one is kept that nobody asks for.
const secretKeptFor = 10 * secretFreshFor

// Secrets reads the credentials of stores and hubs. The controller may read a Secret only
// where it was granted to, and watches none. It is safe for concurrent use.
type Secrets struct {
	reader client.Reader // not cached
	clock  clock.PassiveClock

	mu     sync.Mutex
	byName map[types.NamespacedName]secret
}

type secret struct {
	data    map[string][]byte
	version string
	err     error
	at      time.Time
}

// NewSecrets returns Secrets that read through reader, which should ask the API
// server each time.
func NewSecrets(reader client.Reader) *Secrets { return newSecrets(reader, clock.RealClock{}) }

func newSecrets(reader client.Reader, c clock.PassiveClock) *Secrets {
	return &Secrets{reader: reader, clock: c, byName: make(map[types.NamespacedName]secret)}
}

// Data returns the values of the Secret that a store names and their version; nil
// when it names none. It may ask the API server. The values are shared and must
// not be changed. An error says why they cannot be had, and the cure.
func (s *Secrets) Data(ctx context.Context, of policy.Store) (data map[string][]byte, version string, err error) {
	return s.named(ctx, of.Secret)
}

// HubData does the same for the credentials with which a member reaches its hub.
func (s *Secrets) HubData(ctx context.Context, of policy.Hub) (data map[string][]byte, version string, err error) {
	return s.named(ctx, of.Secret)
}

// SetVersions sets which versions the credentials of the budget's hub, coordinator and
// escrow have, none where they cannot be read. It may ask the API server. The hub is
// replaced, not written to.
func (s *Secrets) SetVersions(ctx context.Context, b *policy.FederatedBudget) {
	_, b.Coordinator.SecretVersion, _ = s.Data(ctx, b.Coordinator)
	_, b.Escrow.SecretVersion, _ = s.Data(ctx, b.Escrow)
	if b.Hub != nil {
		of := *b.Hub
		_, of.SecretVersion, _ = s.HubData(ctx, of)
		b.Hub = &of
	}
}

// named returns the values of a Secret "namespace/name" and their version.
func (s *Secrets) named(ctx context.Context, secret string) (data map[string][]byte, version string, err error) {
	if secret == "" {
		return nil, "", nil
	}
	namespace, name, _ := strings.Cut(secret, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	s.mu.Lock()
	known, ok := s.byName[key]
	s.mu.Unlock()
	if !ok || s.clock.Since(known.at) >= secretFreshFor {
		known = s.read(ctx, key, known)
		s.remember(key, known)
	}
	return known.data, known.version, known.err
}

// read asks the API server. While that does not answer, credentials known before
// stand.
func (s *Secrets) read(ctx context.Context, key types.NamespacedName, before secret) secret {
	var found corev1.Secret
	read := secret{at: s.clock.Now()}
	switch err := s.reader.Get(ctx, key, &found); {
	case apierrors.IsForbidden(err):
		read.err = fmt.Errorf("the controller may not read secret %[1]s/%[2]s; allow it to read that one: "+
			"kubectl create role weir-reads-%[2]s --namespace %[1]s --verb get --resource secrets --resource-name %[2]s && "+
			"kubectl create rolebinding weir-reads-%[2]s --namespace %[1]s --role weir-reads-%[2]s --serviceaccount weir-system:weir-controller",
			key.Namespace, key.Name)
	case apierrors.IsNotFound(err):
		read.err = fmt.Errorf("there is no secret %s: create it, or name another in secretRef", key)
	case err != nil && before.version != "":
		read.data, read.version = before.data, before.version
	case err != nil:
		read.err = fmt.Errorf("reading secret %s: %w", key, err)
	default:
		read.data, read.version = found.Data, found.ResourceVersion
	}
	return read
}

// remember also forgets Secrets that nobody asks for: policies come and go.
func (s *Secrets) remember(key types.NamespacedName, read secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, known := range s.byName {
		if s.clock.Since(known.at) >= secretKeptFor {
			delete(s.byName, name)
		}
	}
	s.byName[key] = read
}

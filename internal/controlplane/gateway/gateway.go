package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	// maxCalls is how many commands may be under way to one store. Redis answers some hundred
	// thousand a second, so it takes more only when it stands still.
	maxCalls = 1024
	// callTime bounds one call. Sidecars wait 100 ms for a lease, and a second where they have a
	// local share; what is granted later is stranded.
	callTime = 250 * time.Millisecond
)

// Config is what a Set works with.
type Config struct {
	// Open opens a store with the values of the Secret it names, and does not wait for a
	// connection. Nil: no store is ever open.
	Open func(of policy.Store, secret map[string][]byte) (backend.Backend, error)
	// Secret returns those values. It may ask the API server.
	Secret func(ctx context.Context, of policy.Store) (map[string][]byte, error)
	// Reached returns what is known of the clock of a store. It does not block. Nil: nothing
	// ever is.
	Reached func(of policy.Store) store.Reached
	Log     logr.Logger // has what errors for sidecars are without
}

// A Set is the stores that sidecars reach through this controller. Policies whose stores are
// sent under one name share one, and commands that come in the same instant share round trips
// as far as the store combines them. Apply may be called concurrently, and with the other
// methods, which may not with each other.
type Set struct {
	Config

	mu      sync.RWMutex
	stores  map[string]*throughStore // by policy.Store.Sent
	closing sync.WaitGroup
}

// New returns a Set of nothing.
func New(c Config) *Set { return &Set{Config: c, stores: map[string]*throughStore{}} }

// A throughStore is one of them. It outlives its credentials.
type throughStore struct {
	backend.Handle[*backend.Server]

	of    policy.Store
	calls chan struct{} // a token for each that is under way

	mu   sync.Mutex
	said string // that the log has last
}

// Keep has the store be open in the version of its credentials that is named. One that cannot
// be opened with it stays as it is.
func (s *Set) Keep(ctx context.Context, of policy.Store) {
	t := s.enter(of)
	on := t.Look()
	switch {
	case on != nil && on.Version == of.SecretVersion:
		return
	case of.Secret != "" && of.SecretVersion == "": // it cannot be read now
		return
	}
	opened, err := s.dial(ctx, of)
	if err != nil {
		s.log(t, "A store that sidecars reach through the controller cannot be opened", err)
		return
	}
	next := backend.Keep(opened, of.SecretVersion)
	if s.Reached != nil {
		next.Reached(s.Reached(of))
	}
	s.retire(t, t.Replace(next, nil))
}

func (s *Set) dial(ctx context.Context, of policy.Store) (backend.Backend, error) {
	if s.Open == nil {
		return nil, fmt.Errorf("this controller opens no %s", of.Type)
	}
	secret, err := s.Secret(ctx, of)
	if err != nil {
		return nil, err
	}
	return s.Open(of, secret)
}

// enter returns the store, which is new if there was none of that name.
func (s *Set) enter(of policy.Store) *throughStore {
	sent := of.Sent()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.stores[sent.Address]
	if t == nil {
		t = &throughStore{of: of, calls: make(chan struct{}, maxCalls)}
		t.Name = sent.Name()
		t.Fail(errClosed)
		s.stores[sent.Address] = t
	}
	return t
}

var (
	errClosed = &store.Failure{Why: "the controller has not opened it; the condition StoreReachable of the policy says why"}
	errSlow   = &store.Failure{Why: fmt.Sprintf("it is slow: %d commands wait for it already", maxCalls)}
)

// Retain closes the stores but those in used, by the addresses under which they are sent. It
// does not wait for the calls under way.
func (s *Set) Retain(used map[string]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, t := range s.stores {
		if _, is := used[address]; !is {
			delete(s.stores, address)
			s.retire(t, t.Replace(nil, errClosed))
		}
	}
}

// retire closes a server in the background, after its last call.
func (s *Set) retire(t *throughStore, before *backend.Server) {
	if before == nil {
		return
	}
	s.closing.Go(func() {
		if err := before.Retire(); err != nil {
			s.Log.Error(err, "closing a store failed", "store", t.of.Name())
		}
	})
}

// Close closes all stores, and waits until their last calls have ended.
func (s *Set) Close() {
	s.Retain(nil)
	s.closing.Wait()
}

// Apply has the store that is sent under the address decide a command, by its own clock. It
// blocks for callTime at most, and not at all while too many calls are under way. No error has
// the address of the store, or a text that it sent.
func (s *Set) Apply(ctx context.Context, address string, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	s.mu.RLock()
	t := s.stores[address]
	s.mu.RUnlock()
	if t == nil {
		of := policy.Store{Type: policy.GatewayStore, Address: address}
		return limiter.Result{}, &store.UnavailableError{Store: of.Name(), Cause: errClosed}
	}
	select {
	case t.calls <- struct{}{}:
		defer func() { <-t.calls }()
	default:
		return limiter.Result{}, &store.UnavailableError{Store: t.Name, Cause: errSlow}
	}
	on, err := t.Enter()
	if err != nil {
		return limiter.Result{}, err
	}
	defer on.Leave()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	res, err := on.Apply(ctx, key, p, c)
	if err != nil {
		return limiter.Result{}, s.shown(t, err)
	}
	return res, nil
}

// shown returns an error as sidecars are sent it.
func (s *Set) shown(t *throughStore, err error) error {
	out := store.Plain(err)
	if away, is := out.(*store.UnavailableError); is { //nolint:errorlint // Plain returns it so
		away.Store = t.Name
		return away
	}
	s.log(t, "A store that sidecars reach through the controller fails", err)
	return out
}

// log logs an error that is not the one before. The probes of stores log which of them are
// away.
func (s *Set) log(t *throughStore, message string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said != err.Error() {
		t.said = err.Error()
		s.Log.Error(err, message, "store", t.of.Name())
	}
}

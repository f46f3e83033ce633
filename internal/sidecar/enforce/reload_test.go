package enforce_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

func TestAReloadKeepsWhatWasCounted(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 10)))
	if got := admit(t, e, 4, "/"); got != 4 {
		t.Fatalf("admitted %d, want 4", got)
	}
	edited := policyOf(limitOf("all", 12), limitOf("new", 100))
	edited.Generation = 2
	apply(t, e, edited)
	if got := admit(t, e, 20, "/"); got != 8 {
		t.Errorf("admitted %d more, want 8", got)
	}
	if all := counted(e, "all"); all.Admitted != 12 {
		t.Errorf("counted %d, want 12", all.Admitted)
	}
}

// TestARemovedPolicyIsNoLongerEnforced also sees its credits come back: another
// sidecar spends them.
func TestARemovedPolicyIsNoLongerEnforced(t *testing.T) {
	s := newStore(frozen)
	retained := make(chan map[policy.Store]bool, 8)
	e := newEnforcer(t, s, func(c *enforce.Config) { c.Stores = fixed{store: s, retained: retained} })
	other := newEnforcer(t, s)
	e.SetHolders("shop", "checkout", 1) // as far as it knows
	p := policyOf(limitOf("all", 10))
	apply(t, e, p)
	apply(t, other, p)
	<-retained
	admit(t, e, 1, "/") // leases all 10
	if got := admit(t, other, 10, "/"); got != 0 {
		t.Fatalf("admitted %d without budget", got)
	}
	apply(t, e)
	if used := <-retained; len(used) != 0 {
		t.Errorf("stores still in use: %v", used)
	}
	if got := admit(t, e, 50, "/"); got != 50 {
		t.Errorf("admitted %d of 50 without a policy", got)
	}
	edited := p
	edited.Generation = 2
	apply(t, other, edited) // forgets that it was refused
	if got := admit(t, other, 20, "/"); got != 9 {
		t.Errorf("admitted %d of the 9 given back", got)
	}
}

// unreachable is a store that is away.
type unreachable struct{}

func (unreachable) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{Store: "test", Cause: errors.New("away")}
}

// TestAnEditOfTheKeyOpensNoSecondShare: what was admitted without the store is
// remembered by the engine alone.
func TestAnEditOfTheKeyOpensNoSecondShare(t *testing.T) {
	e := newEnforcer(t, unreachable{})
	p := policyOf(limitOf("all", 10, byTenant(policy.Shared)))
	p.OnStoreUnavailable = policy.LocalShare
	apply(t, e, p)
	e.SetHolders("shop", "checkout", 1)
	if got := admit(t, e, 20, "/ x-tenant:a"); got != 5 {
		t.Fatalf("admitted %d, want half of the share, as the store's windows are not known", got)
	}
	edited := policyOf(limitOf("all", 10, byTenant(policy.Shared)))
	edited.Generation, edited.OnStoreUnavailable = 2, policy.LocalShare
	edited.Limits[0].Key.MaxKeys = 50
	apply(t, e, edited)
	if got := admit(t, e, 20, "/ x-tenant:a"); got != 0 {
		t.Errorf("admitted %d more in the same window", got)
	}
}

// byPolicyStore makes every store that a policy names another one.
type byPolicyStore map[policy.Store]*twotier.Breaker

func (byPolicyStore) Budget() twotier.Store { return nil }
func (s byPolicyStore) Open(of policy.Store) (twotier.Store, error) {
	if s[of] == nil {
		s[of] = twotier.NewBreaker(unreachable{})
	}
	return s[of], nil
}

func (byPolicyStore) Retain(map[policy.Store]bool) {}

func TestAnotherStoreIsSwappedUnderTheEngine(t *testing.T) {
	var made []*engine
	stores := byPolicyStore{}
	e := newEnforcer(t, nil, func(c *enforce.Config) {
		c.Stores = stores
		c.NewLimiter = func(twotier.Config, twotier.Store) (enforce.Limiter, error) {
			next := &engine{closed: make(chan struct{})}
			made = append(made, next)
			return next, nil
		}
	})
	p := policyOf(limitOf("all", 10))
	apply(t, e, p)
	p.Generation++
	apply(t, e, p)
	if len(made) != 1 {
		t.Fatalf("an edit made %d engines", len(made))
	}
	p.Store = policy.Store{Type: policy.RedisStore, Address: "redis:6379"}
	apply(t, e, p)
	if len(made) != 1 {
		t.Errorf("%d engines, want the one that there was", len(made))
	}
	if swapped := made[0].swapped; len(swapped) != 1 || swapped[0] != twotier.Store(stores[p.Store]) {
		t.Errorf("swapped %v, want the new store once", swapped)
	}
}

// TestReloadsDoNotDisturbRequests replaces policies while requests run. None may
// fail, and the limit holds throughout.
func TestReloadsDoNotDisturbRequests(t *testing.T) {
	const limit = 500
	e := newEnforcer(t, newStore(frozen))
	p := policyOf(limitOf("all", limit))
	apply(t, e, p)
	var admitted atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 2000 {
				v, err := e.Decide(context.Background(), get("/"))
				if err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
				if v.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	for i := range int64(200) {
		p.Generation = i + 2
		p.Limits = []policy.Limit{limitOf("all", limit)}
		if i%2 == 0 {
			p.Limits = append(p.Limits, limitOf(fmt.Sprintf("extra-%d", i), limit))
		}
		apply(t, e, p)
	}
	wait.Wait()
	if admitted.Load() != limit {
		t.Errorf("admitted %d, want %d", admitted.Load(), limit)
	}
}

func TestAnEngineIsClosedAfterItsLastDecision(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	only := &engine{closed: make(chan struct{})}
	only.acquire = func(string, int64) (twotier.Decision, error) {
		close(entered)
		<-release
		select {
		case <-only.closed:
			t.Error("closed under a request")
		default:
		}
		return twotier.Decision{Allowed: true}, nil
	}
	e := newEnforcer(t, nil, func(c *enforce.Config) {
		c.NewLimiter = func(twotier.Config, twotier.Store) (enforce.Limiter, error) { return only, nil }
	})
	apply(t, e, policyOf(limitOf("all", 10)))
	decided := make(chan int)
	go func() { decided <- admit(t, e, 1, "/") }()
	<-entered
	apply(t, e)
	select {
	case <-only.closed: // the engine complains
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if <-decided != 1 {
		t.Error("the request was refused")
	}
	<-only.closed
}

func TestHoldersReachPresentAndFutureEngines(t *testing.T) {
	down := &switched{Store: newStore(frozen)}
	e := newEnforcer(t, down)
	p := policyOf(limitOf("all", 12, byTenant(policy.Shared)))
	p.OnStoreUnavailable = policy.LocalShare
	p.Limits[0].Rates[0].Window = limiter.MinWindow
	e.SetHolders("shop", "checkout", 4)
	if got := e.Holders(); len(got) != 1 || !proto.Equal(got[0], &fleetpb.Holders_Count{Namespace: "shop", Policy: "checkout", Holders: 4}) {
		t.Errorf("holders are %v", got)
	}
	apply(t, e, p)
	admit(t, e, 1, "/ X-Tenant:a") // the store's clock is known now
	down.away.Store(true)
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		v, err := e.Decide(context.Background(), get("/ X-Tenant:b"))
		if err != nil {
			t.Fatal(err)
		}
		if v.Allowed {
			break
		}
	}
	if got := admit(t, e, 12, "/ X-Tenant:c"); got != 3 {
		t.Errorf("admitted %d of 12 alone, want the share of one of 4 holders", got)
	}
}

// switched is a store that can be cut off.
type switched struct {
	twotier.Store
	away atomic.Bool
}

func (s *switched) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if s.away.Load() {
		return away{}.Apply(ctx, key, p, c)
	}
	return s.Store.Apply(ctx, key, p, c)
}

func TestAfterCloseNothingIsAdmitted(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 10)))
	e.Close(t.Context())
	if v, err := e.Decide(context.Background(), get("/")); v.Allowed || err == nil {
		t.Errorf("got %+v, %v", v, err)
	}
	set, err := policy.Compile(policy.Snapshot{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(set, ""); err == nil {
		t.Error("policies were put in force after the end")
	}
}

// TestAResetIsAskedAfter: without it a pod would go on refusing until the window that it
// was refused in ends, however long that is.
func TestAResetIsAskedAfter(t *testing.T) {
	s := newStore(frozen)
	e := newEnforcer(t, s)
	p := policyOf(limitOf("all", 10))
	apply(t, e, p)
	if got := admit(t, e, 20, "/"); got != 10 {
		t.Fatalf("admitted %d, want 10", got)
	}
	key := store.Key{Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "checkout", Limit: "all"}}
	if _, err := s.Apply(t.Context(), key, p.Limits[0].Params(&p), limiter.Command{Op: limiter.Reset}); err != nil {
		t.Fatal(err)
	}
	apply(t, e, p)
	p.ResetAt = 1
	apply(t, e, p)
	if got := admit(t, e, 20, "/"); got != 10 {
		t.Errorf("admitted %d after the reset, want 10", got)
	}
}

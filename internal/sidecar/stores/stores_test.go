package stores_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/sidecar/stores"
	conc "github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errGone = errors.New("gone")

type away struct{}

func (away) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{Store: "away", Cause: errGone}
}

func (away) Gateway(address string) twotier.Store { return behind(address) }

// behind is a store behind the controller that is away.
type behind string

func (b behind) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{Store: string(b), Cause: errGone}
}

// noDivider divides nothing.
type noDivider struct{}

func (noDivider) Apply(context.Context, conc.Key, conc.Params, conc.Command) (conc.Grant, error) {
	return conc.Grant{}, errGone
}

// calls is an observer that remembers what became of calls, by store.
type calls struct {
	mu       sync.Mutex
	errs     map[policy.Store][]error
	closed   []policy.Store
	refilled []store.Scope
}

func (c *calls) Called(s policy.Store, took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errs == nil {
		c.errs = make(map[policy.Store][]error)
	}
	c.errs[s] = append(c.errs[s], err)
}

func (c *calls) Refilled(limit store.Scope, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refilled = append(c.refilled, limit)
}

func (c *calls) Closed(s policy.Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = append(c.closed, s)
}

// A pool is one with a single user.
type pool struct {
	*stores.Pool
	*stores.User
}

func poolOf(o stores.Observer) pool {
	p := stores.NewPool(away{}, noDivider{}, o, slog.New(slog.DiscardHandler))
	return pool{p, p.User()}
}

// newPool returns a pool that is empty again when the test ends.
func newPool(t *testing.T) pool {
	p := poolOf(new(calls))
	t.Cleanup(func() { p.Retain(nil) })
	return p
}

func open(t *testing.T, p pool, s policy.Store) twotier.Store {
	t.Helper()
	opened, err := p.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func redisAt(address string) policy.Store {
	return policy.Store{Type: policy.RedisStore, Address: address}
}

func TestStoresOfOneAddressAreShared(t *testing.T) {
	p := newPool(t)
	controller := policy.Store{Type: policy.ControllerStore}
	a, b := redisAt("127.0.0.1:1"), redisAt("127.0.0.1:2")
	if open(t, p, controller) != open(t, p, controller) || open(t, p, a) != open(t, p, a) {
		t.Error("the same store was opened twice")
	}
	if open(t, p, a) == open(t, p, b) {
		t.Error("two addresses share a store")
	}
	kept, closed := open(t, p, a), open(t, p, b)
	p.Retain(map[policy.Store]bool{a: true})
	if open(t, p, a) != kept {
		t.Error("a store in use was closed")
	}
	if open(t, p, b) == closed {
		t.Error("a store that nobody uses was kept")
	}
}

func TestTheControllerStandsBehindItsBreaker(t *testing.T) {
	p := newPool(t)
	s := open(t, p, policy.Store{Type: policy.ControllerStore})
	if _, guarded := s.(*twotier.Breaker); !guarded {
		t.Errorf("got a %T, which every limiter would probe for itself", s)
	}
}

// TestStoresBehindTheControllerHaveBreakersOfTheirOwn: one that is away says nothing of
// another, nor of the controller's own.
func TestStoresBehindTheControllerHaveBreakersOfTheirOwn(t *testing.T) {
	seen := new(calls)
	p := poolOf(seen)
	defer p.Retain(nil)
	a, b := policy.Store{Type: policy.GatewayStore, Address: "aaaa"}, policy.Store{Type: policy.GatewayStore, Address: "bbbb"}
	opened := open(t, p, a)
	if _, guarded := opened.(*twotier.Breaker); !guarded || open(t, p, a) != opened {
		t.Errorf("got a %T, which is another one each time", opened)
	}
	if open(t, p, b) == opened || open(t, p, policy.Store{Type: policy.ControllerStore}) == opened {
		t.Error("two stores share a breaker")
	}
	for _, of := range []policy.Store{a, b} {
		if err := take(open(t, p, of)); err == nil || !strings.Contains(err.Error(), of.Address) || len(seen.errs[of]) == 0 {
			t.Errorf("%s fails with %v, and was seen to with %v", of.Address, err, seen.errs[of])
		}
	}
	p.Retain(map[policy.Store]bool{b: true})
	if len(seen.closed) != 1 || seen.closed[0] != a || open(t, p, a) == opened {
		t.Errorf("%v are closed", seen.closed)
	}
}

func TestAnUnknownStoreIsAnError(t *testing.T) {
	p := newPool(t)
	if _, err := p.Open(policy.Store{Type: "Disk"}); err == nil {
		t.Error("opened")
	}
}

func TestCallsAndClosingAreObserved(t *testing.T) {
	seen := new(calls)
	p := poolOf(seen)
	controller, waiting := policy.Store{Type: policy.ControllerStore}, redisAt("127.0.0.1:1")
	waiting.Secret, waiting.SecretVersion = "shop/db", "7"
	for _, of := range []policy.Store{controller, waiting} {
		if err := take(open(t, p, of)); err == nil {
			t.Errorf("%s answered", of.Type)
		}
	}
	p.Retain(nil)
	waiting.SecretVersion = ""
	for _, of := range []policy.Store{controller, waiting} {
		if errs := seen.errs[of]; len(errs) != 1 || errs[0] == nil {
			t.Errorf("of %s %v was observed, want one call that failed", of.Type, errs)
		}
	}
	if len(seen.closed) != 1 || seen.closed[0] != waiting {
		t.Errorf("%v were closed, want the store without its secret's version", seen.closed)
	}
}

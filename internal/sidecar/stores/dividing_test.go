package stores_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/internal/testing/redistest"
	conc "github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// beat asks for a share of a pool in a store.
func beat(t *testing.T, u *stores.User, of policy.Store, seq int64) (conc.Grant, error) {
	t.Helper()
	c, err := u.Coordinator(of)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a server of a busy machine
	defer cancel()
	return c.Apply(ctx, conc.Key{Cluster: "test", Namespace: "shop", Name: "checkout"},
		conc.Params{Min: 1, Max: 8, Initial: 4, TTL: limiter.Second, Quarantine: limiter.Second},
		conc.Command{Op: conc.Beat, Holder: "uid/nonce", Seq: seq})
}

// TestPoolsAreDividedOverTheConnectionsOfCounters waits for credentials as counters do.
func TestPoolsAreDividedOverTheConnectionsOfCounters(t *testing.T) {
	t.Parallel() // it starts servers
	_, db := passwordServer(t)
	cache := redisAt(redistest.Start(t).Addr)
	p := newPool(t)
	counters := open(t, p, cache)
	if _, err := beat(t, p.User, db, 1); !unavailable("secret shop/db, have not arrived")(err) {
		t.Errorf("without credentials: %v", err)
	}
	p.Learn([]stores.Secret{credentials("1", hidden)})
	for _, of := range []policy.Store{db, cache} {
		if g, err := beat(t, p.User, of, 2); err != nil || g.Limit != 4 || g.Holders != 1 {
			t.Errorf("%s granted %+v, %v", of.Type, g, err)
		}
	}
	if open(t, p, cache) != counters {
		t.Error("the same store was opened twice")
	}
}

// TestAStoreIsOpenAsLongAsAnybodyNeedsIt has two users of one store.
func TestAStoreIsOpenAsLongAsAnybodyNeedsIt(t *testing.T) {
	t.Parallel() // it starts a server
	of := redisAt(redistest.Start(t).Addr)
	p := newPool(t)
	other := p.Pool.User()
	counters := open(t, p, of)
	if _, err := beat(t, other, of, 1); err != nil {
		t.Fatal(err)
	}
	p.Retain(nil)
	if _, err := beat(t, other, of, 2); err != nil {
		t.Errorf("a store in use was closed: %v", err)
	}
	if open(t, p, of) != counters {
		t.Error("the same store was opened twice")
	}
	p.Retain(nil)
	other.Retain(nil)
	if err := take(counters); err == nil {
		t.Error("a store that nobody uses is open")
	}
}

func TestTheControllerDividesPoolsItself(t *testing.T) {
	if _, err := beat(t, newPool(t).User, policy.Store{Type: policy.ControllerStore}, 1); !errors.Is(err, errGone) {
		t.Errorf("got %v, want what the controller said", err)
	}
}

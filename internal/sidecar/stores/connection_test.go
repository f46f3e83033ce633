package stores_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/internal/testing/redistest"
	conc "github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// TestAnIdleStoreLearnsOfALossByItself has a store refuse something for an hour, and asks
// it nothing more.
func TestAnIdleStoreLearnsOfALossByItself(t *testing.T) {
	t.Parallel() // it waits for refreshes
	server := redistest.Start(t)
	p := newPool(t)
	refuse(t, open(t, p, redisAt(server.Addr)))
	for _, loss := range []struct {
		name   string
		happen func()
	}{
		{"being new", func() {}},
		{"a flush", server.Flush},
		{"a restart", server.Restart},
	} {
		loss.happen()
		deadline := time.After(10 * time.Second)
		for len(server.Do("KEYS", "weir:*:memory").([]any)) < 64 {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-deadline:
				t.Fatalf("after %s the store does not begin to remember", loss.name)
			}
		}
	}
}

func refuse(t *testing.T, s twotier.Store) {
	t.Helper()
	key := store.Key{Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "p", Limit: "l"}, Hash: "ab"}
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 1, Window: 3600 * limiter.Second}}, Generation: 1}
	r, err := s.Apply(t.Context(), key, p, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
	if err != nil || r.Remaining > 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
}

// TestConnectionsToRedisAreNotAnnouncedToTheScheduler: while a server owes an answer, it is
// read by a socket.Conn.
func TestConnectionsToRedisAreNotAnnouncedToTheScheduler(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	open(t, newPool(t), redisAt(listener.Addr().String())) // which asks at once what it remembers
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	stacks := make([]byte, 1<<20)
	for late := time.After(10 * time.Second); !bytes.Contains(stacks, []byte("socket.(*Conn).Read(")); {
		select {
		case <-tick.C:
			stacks = stacks[:runtime.Stack(stacks[:cap(stacks)], true)]
		case <-late:
			t.Fatalf("no goroutine reads from a socket.Conn:\n%s", stacks)
		}
	}
}

// TestClosingDoesNotWaitForAServerThatHangs closes a store whose refresh is under
// way.
func TestClosingDoesNotWaitForAServerThatHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p := newPool(t)
	open(t, p, redisAt(listener.Addr().String()))
	called, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer called.Close()
	if _, err := called.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	p.Retain(nil)
	if took := time.Since(start); took > 900*time.Millisecond {
		t.Errorf("closing took %v", took)
	}
}

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

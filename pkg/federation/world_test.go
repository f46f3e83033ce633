package federation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

var (
	errCut = &store.UnavailableError{Store: "test", Cause: errors.New("cut off")}
	key    = store.Key{Scope: store.Scope{Cluster: "c", Namespace: "ns", Policy: "p", Limit: "l"}}
)

// budget returns parameters of a budget of that many members of equal weight.
func budget(limit int64, window limiter.Micros, members int) ledger.Params {
	p := ledger.Params{Limit: limit, Window: window}
	for i := range members {
		p.Members = append(p.Members, ledger.Member{Name: fmt.Sprintf("region-%02d", i), Weight: 1, Borrowing: -1})
	}
	return p
}

// nominal gives each member an equal part, and lends nothing of it.
func nominal(p ledger.Params) ledger.Params {
	p.Slices = true
	for i := range p.Members {
		p.Members[i].Nominal = p.Limit / int64(len(p.Members))
		p.Members[i].Kept = p.Members[i].Nominal
	}
	return p
}

func config(p ledger.Params, member int) federation.Config {
	return federation.Config{ID: "acme/checkout", Member: p.Members[member].Name, Params: p, Clock: new(monotonic.Clock)}
}

// limitOf returns what a policy makes of a budget.
func limitOf(p ledger.Params) limiter.Params {
	return limiter.Params{Algorithm: limiter.FixedWindow, Rates: []limiter.Rate{{Limit: p.Limit, Window: p.Window}}}
}

// open returns a region that is closed when the test ends.
func open(t *testing.T, cfg federation.Config, c federation.Coordinator, e federation.Escrow) *federation.Region {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	r := federation.New(cfg, c, e)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		r.Close(ctx)
	})
	return r
}

// take asks for units and has to be answered.
func take(t *testing.T, r *federation.Region, p ledger.Params, least, want int64) limiter.Result {
	t.Helper()
	res, err := r.Apply(t.Context(), key, limitOf(p), limiter.Command{Op: limiter.Take, Min: least, Want: want})
	if err != nil {
		t.Fatalf("take %d to %d: %v; %+v", least, want, err, r.Stats())
	}
	return res
}

// takes expects that many units when asked for 1 to want.
func takes(t *testing.T, r *federation.Region, p ledger.Params, want, units int64) {
	t.Helper()
	if res := take(t, r, p, 1, want); res.Granted != units {
		t.Errorf("got %d of %d, want %d: %+v; %+v", res.Granted, want, units, res, r.Stats())
	}
}

// A count is what was admitted in each window of the hub's clock.
type count struct {
	hub    *federationtest.Hub
	window limiter.Micros

	mu       sync.Mutex
	admitted map[int64]int64
}

func newCount(h *federationtest.Hub, p ledger.Params) *count {
	return &count{hub: h, window: p.Window, admitted: map[int64]int64{}}
}

func (c *count) add(units int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admitted[int64(c.hub.Now())/int64(c.window)] += units
}

// check expects that no window admitted more than the limit, and returns what all did.
func (c *count) check(t *testing.T, limit int64) (total int64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, index := range slices.Sorted(maps.Keys(c.admitted)) {
		if n := c.admitted[index]; n > limit {
			t.Errorf("window %d admitted %d, of %d", index, n, limit)
		}
		total += c.admitted[index]
	}
	return total
}

// pass lets time pass until everything that is due is done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// nextWindow waits until a window of the hub's clock has begun.
func nextWindow(h *federationtest.Hub, p ledger.Params) {
	length := int64(p.Window)
	pass(time.Duration(length-int64(h.Now())%length+1000) * time.Microsecond)
}

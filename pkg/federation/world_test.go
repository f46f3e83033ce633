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

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

var (
	errCut = &store.UnavailableError{Store: "test", Cause: errors.New("cut off")}
	key    = store.Key{Scope: store.Scope{Cluster: "c", Namespace: "ns", Policy: "p", Limit: "l"}}
)

// A hub is a coordinator in the hands of a test: it can be replaced, be away, and lose
// its memory.
type hub struct {
	ahead time.Duration // of the clock of the test
	rate  float64       // of its clock

	mu    sync.Mutex
	begin time.Time
	term  int64
	to    federation.Coordinator // nil while it is away
}

func newHub(ahead time.Duration) *hub {
	h := &hub{ahead: ahead, rate: 1, begin: time.Now()}
	h.restart(true)
	return h
}

// now reads the coordinator's clock.
func (h *hub) now() limiter.Instant {
	passed := time.Duration(float64(time.Since(h.begin)) * h.rate)
	return limiter.Instant(h.begin.Add(h.ahead + passed).UnixMicro())
}

// restart replaces the coordinator by one that knows nothing.
func (h *hub) restart(first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term++
	h.to = memory.New(memory.Options{Clock: h.now, Term: h.term, First: first})
}

func (h *hub) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.to = nil
}

func (h *hub) get() federation.Coordinator {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.to
}

// A line is the way of one region to the hub.
type line struct {
	hub *hub

	mu          sync.Mutex
	there, back func() time.Duration
	cut         bool // nothing arrives, and calls take until they are given up
	lose        func() bool
	twice       func() bool
	commands    []ledger.Command
	sent        []time.Time
}

func newLine(h *hub, each time.Duration) *line {
	delay := func() time.Duration { return each }
	no := func() bool { return false }
	return &line{hub: h, there: delay, back: delay, lose: no, twice: no}
}

func (l *line) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// Apply implements federation.Coordinator.
func (l *line) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	l.mu.Lock()
	l.commands = append(l.commands, c)
	l.sent = append(l.sent, time.Now())
	there, back, lost, answerLost, twice, cut := l.there(), l.back(), l.lose(), l.lose(), l.twice(), l.cut
	l.mu.Unlock()
	if cut || lost {
		return give(ctx)
	}
	if !wait(ctx, there) {
		// It arrives although nobody waits for it any more.
		if to := l.hub.get(); to != nil {
			_, _ = to.Apply(context.WithoutCancel(ctx), id, p, c)
		}
		return ledger.Grant{}, &store.UnavailableError{Store: "test", Cause: ctx.Err()}
	}
	to := l.hub.get()
	if to == nil {
		return ledger.Grant{}, errCut
	}
	g, err := to.Apply(context.WithoutCancel(ctx), id, p, c)
	if twice {
		_, _ = to.Apply(context.WithoutCancel(ctx), id, p, c)
	}
	if answerLost {
		return give(ctx)
	}
	if !wait(ctx, back) {
		return ledger.Grant{}, &store.UnavailableError{Store: "test", Cause: ctx.Err()}
	}
	return g, err
}

// Observe implements federation.Coordinator.
func (l *line) Observe(ctx context.Context, id string) (ledger.State, error) {
	return l.hub.get().Observe(ctx, id)
}

func give(ctx context.Context) (ledger.Grant, error) {
	<-ctx.Done()
	return ledger.Grant{}, &store.UnavailableError{Store: "test", Cause: ctx.Err()}
}

func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

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
	hub    *hub
	window limiter.Micros

	mu       sync.Mutex
	admitted map[int64]int64
}

func newCount(h *hub, p ledger.Params) *count {
	return &count{hub: h, window: p.Window, admitted: map[int64]int64{}}
}

func (c *count) add(units int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admitted[int64(c.hub.now())/int64(c.window)] += units
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
func nextWindow(h *hub, p ledger.Params) {
	length := int64(p.Window)
	pass(time.Duration(length-int64(h.now())%length+1000) * time.Microsecond)
}

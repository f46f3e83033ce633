package concurrency

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

// fixed returns the configuration of a holder of a pool with a limit that stays, with
// the times that users have unless they choose others.
func fixed(holder string, limit int64) Config {
	return Config{
		Key:    pool.Key{Cluster: "c", Namespace: "ns", Name: "pool"},
		Holder: holder,
		Params: pool.Params{
			Min: limit, Max: limit, Initial: limit,
			TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 1,
		},
		Law:       adaptive.Config{Algorithm: adaptive.Fixed, Max: limit},
		Heartbeat: Heartbeat{Interval: time.Second, MinInterval: 100 * time.Millisecond},
		Margin:    500 * time.Millisecond,
	}
}

// eager is fixed with eager beats.
func eager(holder string, limit int64) Config {
	c := fixed(holder, limit)
	c.Heartbeat.Eager = true
	return c
}

// watch returns the clock of a coordinator that gains that much of each second.
func watch(gain float64) func() limiter.Instant {
	began := time.Now()
	return func() limiter.Instant {
		passed := time.Since(began)
		return limiter.Instant(began.Add(passed + time.Duration(gain*float64(passed))).UnixMicro())
	}
}

// remember returns a coordinator that never forgot anything.
func remember() *memory.Coordinator {
	return memory.New(memory.Options{Clock: watch(0), Term: 1, First: true})
}

var (
	errDown   = &store.UnavailableError{Store: "test", Cause: errors.New("down")}
	errDefect = errors.New("defect")
)

// A line is the way to a coordinator, in the hands of a test.
type line struct {
	mu       sync.Mutex
	to       Coordinator // guarded by mu, as all below
	there    time.Duration
	back     time.Duration
	err      error // instead of an answer
	deaf     bool  // nothing arrives, and calls take until they are given up
	commands []pool.Command
	sent     []time.Time
}

func newLine(to Coordinator) *line { return &line{to: to} }

// set changes how the line behaves.
func (l *line) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// Apply implements Coordinator.
func (l *line) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	l.mu.Lock()
	l.commands = append(l.commands, c)
	l.sent = append(l.sent, time.Now())
	to, there, back, err, deaf := l.to, l.there, l.back, l.err, l.deaf
	l.mu.Unlock()
	if deaf {
		<-ctx.Done()
		return pool.Grant{}, &store.UnavailableError{Store: "test", Cause: ctx.Err()}
	}
	if err != nil {
		return pool.Grant{}, err
	}
	time.Sleep(there)
	g, err := to.Apply(context.WithoutCancel(ctx), key, p, c)
	time.Sleep(back)
	return g, err
}

// beats returns the commands so far.
func (l *line) beats() []pool.Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.commands)
}

// last returns the last command.
func (l *line) last(t *testing.T) pool.Command {
	t.Helper()
	all := l.beats()
	if len(all) == 0 {
		t.Fatal("no beat was sent")
	}
	return all[len(all)-1]
}

// answers is a coordinator that is a function.
type answers func(c pool.Command) (pool.Grant, error)

// Apply implements Coordinator.
func (a answers) Apply(_ context.Context, _ pool.Key, _ pool.Params, c pool.Command) (pool.Grant, error) {
	return a(c)
}

// constant answers every beat with a share of a pool with no other holder.
func constant(share int64) answers {
	return func(c pool.Command) (pool.Grant, error) {
		return pool.Grant{
			Seq: c.Seq, Term: 1, Generation: 1, Share: share, TTL: 2 * limiter.Second,
			Limit: share, Holders: 1, Granted: share, InFlight: c.InFlight, Occupied: share, Bound: share,
		}, nil
	}
}

// part answers every beat with a share of the limit of a pool with others.
func part(share, limit int64) answers {
	return func(c pool.Command) (pool.Grant, error) {
		g, err := constant(share)(c)
		g.Limit, g.Holders, g.Granted, g.Occupied, g.Bound = limit, 2, limit, limit, limit
		return g, err
	}
}

// open returns a guard on a machine that is never suspended, which is closed when the
// test ends, however much is in flight. Work that is due at once is done.
func open(t *testing.T, cfg Config, c Coordinator) *Guard {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	g := newGuard(cfg, c, new(monotonic.Clock))
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		cancel()
		g.Close(ctx)
	})
	synctest.Wait()
	return g
}

// take returns the slots of n requests that have to be admitted.
func take(t *testing.T, g *Guard, n int) []Slot {
	t.Helper()
	var out []Slot
	for i := range n {
		s, v := g.Acquire(t.Context(), Request{})
		if v != Admitted {
			t.Fatalf("request %d of %d: %v; %+v", i+1, n, v, g.Stats())
		}
		out = append(out, s)
	}
	return out
}

// fill returns the slots of as many requests as are admitted.
func fill(t *testing.T, g *Guard) []Slot {
	t.Helper()
	var out []Slot
	for {
		s, v := g.Acquire(t.Context(), Request{})
		if v != Admitted {
			return out
		}
		out = append(out, s)
	}
}

// expect asks for a slot that has to be refused.
func expect(t *testing.T, g *Guard, want Verdict) {
	t.Helper()
	if _, got := g.Acquire(t.Context(), Request{}); got != want {
		t.Errorf("%v, want %v; %+v", got, want, g.Stats())
	}
}

// release gives slots back as served.
func release(slots []Slot) {
	for _, s := range slots {
		s.Release(Served)
	}
}

// pass lets time pass until everything that is due is done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

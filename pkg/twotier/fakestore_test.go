package twotier

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

// fakeStore is a store behind a network: it applies limiter.Params by a
// clock of its own, and its requests and answers take time and get lost.
type fakeStore struct {
	ahead time.Duration // of its clock, over the clock of the test
	rate  float64       // of its clock: 1 + what it gains a second

	mu       sync.Mutex
	keys     map[store.Key]limiter.State
	memory   limiter.Memory
	down     error                                                // answers with this instead
	there    func() time.Duration                                 // delay before a command is applied
	back     func() time.Duration                                 // delay after it
	lost     func() bool                                          // whether an answer is lost
	commands []limiter.Command                                    // applied
	hook     func(limiter.Command, limiter.Result) limiter.Result // may change an answer
}

func newFakeStore() *fakeStore {
	none := func() time.Duration { return 0 }
	return &fakeStore{
		rate: 1, keys: make(map[store.Key]limiter.State),
		there: none, back: none, lost: func() bool { return false },
		hook: func(_ limiter.Command, r limiter.Result) limiter.Result { return r },
	}
}

func (s *fakeStore) now() limiter.Instant {
	real := time.Now().Add(s.ahead).UnixMicro()
	gained := math.Round(float64(time.Since(time.Unix(946684800, 0)).Microseconds()) * (s.rate - 1))
	return limiter.Instant(real + int64(gained))
}

func (s *fakeStore) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := s.travel(ctx, s.there); err != nil {
		return limiter.Result{}, err
	}
	s.mu.Lock()
	if s.down != nil {
		defer s.mu.Unlock()
		return limiter.Result{}, s.down
	}
	c.Memory = s.memory
	state, res := p.Step(s.keys[key], s.now(), c)
	s.keys[key] = state
	s.commands = append(s.commands, c)
	res = s.hook(c, res)
	lost := s.lost()
	s.mu.Unlock()
	if lost {
		<-ctx.Done()
		return limiter.Result{}, unavailable(ctx.Err())
	}
	return res, s.travel(ctx, s.back)
}

func (s *fakeStore) travel(ctx context.Context, delay func() time.Duration) error {
	s.mu.Lock()
	d := delay()
	s.mu.Unlock()
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

func (s *fakeStore) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// count returns how many commands of the kind were applied.
func (s *fakeStore) count(op limiter.Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.commands {
		if c.Op == op {
			n++
		}
	}
	return n
}

func unavailable(cause error) error { return &store.UnavailableError{Store: "fake", Cause: cause} }

var errDown = unavailable(errors.New("connection refused"))

func constant(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// perSecond is a configuration of one rate over one second.
func perSecond(limit, batch int64) Config {
	return Config{
		Scope:         store.Scope{Cluster: "c", Namespace: "ns", Policy: "p", Limit: "l"},
		Params:        limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: limiter.Second}}},
		Size:          Size{Batch: batch},
		MaxKeys:       100,
		OnUnavailable: Deny,
		Holders:       1,
	}
}

// newClock returns the clock of a machine that is never suspended.
func newClock() *clock { return &clock{Clock: new(monotonic.Clock)} }

// open returns a limiter that is closed when the test ends.
func open(t *testing.T, cfg Config, s Store) *Limiter {
	t.Helper()
	return openWith(t, cfg, s, newClock())
}

func openWith(t *testing.T, cfg Config, s Store, c *clock) *Limiter {
	t.Helper()
	l := mustNew(cfg, newBreaker(s, c))
	t.Cleanup(func() { l.Close(context.WithoutCancel(t.Context())) })
	return l
}

func acquire(t *testing.T, l *Limiter, value string, cost int64) Decision {
	t.Helper()
	d, err := l.Acquire(t.Context(), Request{Value: value, Cost: cost})
	if err != nil {
		t.Fatalf("Acquire(%q, %d): %v", value, cost, err)
	}
	return d
}

// admitted returns how much of n requests of cost 1 is admitted.
func admitted(t *testing.T, l *Limiter, n int) int64 {
	t.Helper()
	var sum int64
	for range n {
		if acquire(t, l, "", 1).Allowed {
			sum++
		}
	}
	return sum
}

// nextWindow sleeps until a little after the next full second.
func nextWindow() {
	now := time.Now()
	time.Sleep(now.Truncate(time.Second).Add(time.Second + 2*time.Millisecond).Sub(now))
}

// mustNew is New with a configuration that is valid.
func mustNew(cfg Config, s Store) *Limiter {
	l, err := New(cfg, s)
	if err != nil {
		panic(err)
	}
	return l
}

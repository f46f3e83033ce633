package twotier

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Limiter enforces one limit of one policy in one process. Its methods may be
// called concurrently. It has to be closed.
type Limiter struct {
	gate   *Gate
	clock  *clock
	config atomic.Pointer[Config]
	keys   table
	single *Key

	holders atomic.Int64 // processes that enforce the limit; 0 while not known
	// What replies to many keys have in common.
	windows  shared[limiter.Windows]
	views    shared[view]
	refusals shared[refusal]

	// Store calls run on behalf of the limiter, not of the request that caused
	// them: ctx ends when the limiter is closed.
	ctx    context.Context //nolint:containedctx // of the calls, not of a request
	cancel context.CancelFunc

	mu     sync.RWMutex // guards closed, and work against waiting for it
	closed bool
	work   sync.WaitGroup

	roundTrips, failures atomic.Int64
}

// New returns a limiter for cfg in front of s. Limiters of one store should be
// given the same *Gate; another Store gets a gate of its own.
func New(cfg Config, s Store) *Limiter {
	gate, ok := s.(*Gate)
	if !ok {
		gate = NewGate(s)
	}
	gate.clock.retain()
	l := &Limiter{gate: gate, clock: gate.clock}
	l.config.Store(cfg.normalize())
	l.SetHolders(cfg.Holders)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.single = newKey(l, "")
	l.keys.init(l, l.config.Load().MaxKeys)
	return l
}

// Acquire decides a request of the given cost, at least 1, on the counter of
// value; "" is the limit's single counter. It blocks only while the store is
// asked, and no longer than ctx allows: then it returns the error of ctx. Any
// other error is a defect, never an outage of the store, which is a Decision.
func (l *Limiter) Acquire(ctx context.Context, value string, cost int64) (d Decision, err error) {
	if value == "" {
		return l.single.Acquire(ctx, cost)
	}
	e := l.keys.find(value)
	if e == nil {
		return l.keys.insert(value).Acquire(ctx, cost)
	}
	if e.decide(l, cost, &d) {
		return d, nil
	}
	return e.key.miss(ctx, cost)
}

// Key returns a handle on the counter of value, which saves looking it up again.
// It stays good for the life of the limiter.
func (l *Limiter) Key(value string) *Key {
	if value == "" {
		return l.single
	}
	if e := l.keys.find(value); e != nil {
		return e.key
	}
	return l.keys.insert(value)
}

// Reconfigure makes cfg effective for decisions that begin from now on. Credits
// in hand stay good, for they were charged to the same counters; refusals are
// forgotten, since new parameters may grant what old ones did not.
func (l *Limiter) Reconfigure(cfg Config) {
	cfg.Scope = l.config.Load().Scope
	next := cfg.normalize()
	l.config.Store(next)
	l.SetHolders(cfg.Holders)
	l.keys.bound(next.MaxKeys)
	if next.Mode == Strict {
		// A strict limiter spends no credits. They are given back after the mode is
		// in force, so no key gets a new lease behind our back.
		l.start(func() { l.giveAllBack(l.ctx) })
	}
}

// SetHolders says how many processes enforce the limit. While that is not known,
// 0, nothing is admitted on the local share.
func (l *Limiter) SetHolders(n int64) { l.holders.Store(max(n, 0)) }

// Stats are figures of a limiter since it was made.
type Stats struct {
	RoundTrips int64 // store calls, returns included
	Errors     int64 // store calls that failed
	ActiveKeys int   // values that have a counter of their own
	// CutOffSince is when the store became unavailable, zero while it is not, and
	// CutOff why. They are found out by requests: without any, they stay.
	CutOffSince time.Time
	CutOff      error
}

// Stats returns the present figures.
func (l *Limiter) Stats() Stats {
	s := Stats{RoundTrips: l.roundTrips.Load(), Errors: l.failures.Load(), ActiveKeys: l.keys.size()}
	s.CutOffSince, s.CutOff = l.gate.state()
	return s
}

// Close refuses requests from now on, waits for store calls under way, and gives
// unspent credits back to the store, each key's once. Credits that could not be
// given back before ctx is done are forfeited. Close once.
func (l *Limiter) Close(ctx context.Context) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()

	stop := context.AfterFunc(ctx, l.cancel)
	defer stop()
	l.work.Wait()
	l.giveAllBack(ctx)
	l.cancel()
	l.clock.release()
}

// giveAllBack returns the unspent credits of all keys, several at a time.
func (l *Limiter) giveAllBack(ctx context.Context) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, 16)
	l.eachKey(func(k *Key) {
		windows, credits := k.surrender()
		if credits == 0 || ctx.Err() != nil {
			return
		}
		slots <- struct{}{}
		wait.Go(func() {
			l.sendBack(ctx, k, windows, credits)
			<-slots
		})
	})
	wait.Wait()
}

// giveBack returns credits to the store without waiting for it.
func (l *Limiter) giveBack(k *Key, windows *limiter.Windows, credits int64) {
	l.start(func() { l.sendBack(l.ctx, k, windows, credits) })
}

// sendBack returns credits to the store. Whatever the outcome it is not tried
// again: a return that was applied although its answer got lost would be
// credited twice.
func (l *Limiter) sendBack(ctx context.Context, k *Key, windows *limiter.Windows, credits int64) {
	_, _ = l.ask(ctx, k, l.config.Load(), limiter.Command{Op: limiter.Return, Want: credits, Windows: *windows})
}

// ask calls the store once and counts the call.
func (l *Limiter) ask(ctx context.Context, k *Key, cfg *Config, c limiter.Command) (reply, error) {
	r, err := l.gate.ask(ctx, k.storeKey(cfg), cfg.Params, c, cfg.Timeout)
	if r.asked {
		l.roundTrips.Add(1)
		if err != nil {
			l.failures.Add(1)
		}
	}
	return r, err
}

// start runs f on a goroutine that Close waits for, or returns false when the
// limiter is closed.
func (l *Limiter) start(f func()) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return false
	}
	l.work.Go(f)
	return true
}

func (l *Limiter) isClosed() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.closed
}

func (l *Limiter) eachKey(f func(*Key)) {
	f(l.single)
	l.keys.each(f)
}

// share returns a copy of w without the granted counts.
func (l *Limiter) share(w limiter.Windows) *limiter.Windows {
	for i := range w.Slice() {
		w.Open[i].Granted = 0
	}
	return l.windows.share(w)
}

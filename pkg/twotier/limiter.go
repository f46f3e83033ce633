package twotier

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// A Limiter enforces one limit of one policy in one process. Its methods may be
// called concurrently. It has to be closed.
type Limiter struct {
	clock    *clock
	release  func() // of the clock
	settings atomic.Pointer[settings]
	keys     table
	single   *Key

	holders atomic.Int64 // processes that enforce the limit; 0 while not known
	// The parts that replies to many keys have in common.
	windows            interned[limiter.Windows]
	granting, refusing internedInfo

	// Store calls run on behalf of the limiter, not of the request that caused
	// them: ctx ends when the limiter is closed.
	ctx    context.Context //nolint:containedctx // of the calls, not of a request
	cancel context.CancelFunc

	mu     sync.RWMutex // guards closed, and work against waiting for it
	closed bool
	work   sync.WaitGroup

	configMu sync.Mutex               // held while settings are replaced
	idleScan atomic.Pointer[idleScan] // of idle keys, nil when none gives anything back; written with configMu held

	slow                 slowness
	roundTrips, failures atomic.Int64
	promised             atomic.Int64
	learning             atomic.Pointer[learning] // nil while the store knows what it granted
}

// New returns a limiter for cfg in front of s, or the error of Config.Validate. Limiters of
// one store should be given the same *Breaker; another Store gets a breaker of its own.
func New(cfg Config, s Store) (*Limiter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	breaker := breakerOf(s, &process)
	l := &Limiter{clock: breaker.clock, release: breaker.clock.retain()}
	l.settings.Store(newSettings(l, cfg, breaker))
	l.SetHolders(cfg.Holders)
	ctx, cancel := context.WithCancel(context.Background())
	l.ctx, l.cancel = monotonic.Share(ctx), cancel
	l.single = newKey(l, "", false)
	l.keys.init(l, l.settings.Load())
	l.configureScan()
	return l, nil
}

// Acquire decides a request. It blocks only while the store is asked, and no
// longer than ctx allows: then it returns the error of ctx, at once at its deadline
// and at the latest when a call times out when it is cancelled before. Any other error
// is a defect, never an outage of the store, which is a Decision.
func (l *Limiter) Acquire(ctx context.Context, r Request) (d Decision, err error) {
	e := l.single.lease.Load()
	if r.Value != "" || r.Tenant != "" {
		e = l.keys.find(r.Value, r.Tenant)
	}
	switch {
	case e != nil && e.decide(l, r.Cost, &d):
		return d, nil
	case r.Held:
		return Decision{}, ErrNotHeld
	case e == nil:
		return l.keys.insert(r.Value, r.Tenant).Acquire(ctx, r.Cost)
	}
	return e.key.miss(ctx, r.Cost)
}

// Key returns a handle on the counter of value, and of the tenant's part of it
// unless tenant is "", which saves looking it up again; see Request. It stays good
// for the life of the limiter.
func (l *Limiter) Key(value, tenant string) *Key {
	if value == "" && tenant == "" {
		return l.single
	}
	if e := l.keys.find(value, tenant); e != nil {
		return e.key
	}
	return l.keys.insert(value, tenant)
}

// SetHolders says how many processes enforce the limit. While that is not known,
// 0, nothing is admitted on the local share.
func (l *Limiter) SetHolders(n int64) { l.holders.Store(max(n, 0)) }

// Close refuses requests from now on, waits for store calls in progress, and gives
// unspent credits back to the store, each key's once, and all to Config.Memory. Credits that
// could not be given back before ctx is done are forfeited. Close once.
func (l *Limiter) Close(ctx context.Context) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.configMu.Lock()
	l.stopScan()
	l.configMu.Unlock()

	stop := context.AfterFunc(ctx, l.cancel)
	defer stop()
	l.work.Wait()
	l.returnAll(ctx)
	l.keys.memory.close()
	l.cancel()
	l.release()
}

// start runs f on a goroutine that Close waits for, or returns false when the
// limiter is closed.
func (l *Limiter) start(f func()) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return false
	}
	l.clock.run(&l.work, f)
	return true
}

// begin counts work that its caller does, and ends by work.Done, or returns false
// when the limiter is closed.
func (l *Limiter) begin() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return false
	}
	l.work.Add(1)
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

// internWindows returns a copy of w without the granted counts.
func (l *Limiter) internWindows(w limiter.Windows) *limiter.Windows {
	for i := range w.Slice() {
		w.Open[i].Granted = 0
	}
	return l.windows.intern(w)
}

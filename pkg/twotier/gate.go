package twotier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Gate stands before a store that may become unavailable. While it is, one
// request at a time finds out whether it still is, and the others fail at once
// instead of each waiting for a time-out. The limiters of one store share one
// gate; a part of the store that alone fails to serve is shut by itself. The gate also
// learns what the store's clock reads.
//
// One failure does not count: a take is sent a second time while its time lasts, and the
// gate shuts when that fails, too, or the next one. For a store that never answered, one
// failure is enough. A take that fails because the store moves waits until it has moved.
type Gate struct {
	store Store
	clock *clock

	mu     sync.Mutex // guards the rest
	whole  door
	parts  map[store.Part]*door // that failed since they last answered
	offset offset
	seen   limiter.Instant // the latest time the store reported
	floor  limiter.Instant // by the store's clock: see view
	slow   int64           // how long slow replies take, by the latest ones; 0 before the first
	ways   uint64          // Ways of the store, as last looked at
	alone  alone
}

// A Reconnecting store is thought available again as soon as there is a new way to it:
// its gate opens, and no window that begins from then on begins on the local share before
// the store was asked.
type Reconnecting interface {
	// Ways returns how many there have been, and when the last one was lost that was. Until
	// then the store may have granted others of any window.
	Ways() (n uint64, lost time.Time)
	// Moved reports whether the nth way ended because the store moves, and there is another
	// one: a call that failed meanwhile is not a failure of the store, and is made again.
	// While the store moves, Moved waits for that, at most for MoveTime since the way ended;
	// otherwise it returns at once.
	Moved(ctx context.Context, n uint64) bool
}

// MoveTime is how long calls wait for a store that moves. Then it is unavailable.
const MoveTime = time.Second

// look opens the gate when there is a new way to the store. The lock is held.
func (g *Gate) look() {
	r, ok := g.store.(Reconnecting)
	if !ok {
		return
	}
	if n, _ := r.Ways(); n != g.ways {
		g.ways, g.whole = n, door{failures: enough - 1, era: g.whole.era + 1}
		clear(g.parts)
	}
}

// NewGate returns a gate before s, which is thought available.
func NewGate(s Store) *Gate { return newGate(s, &process) }

func newGate(s Store, c *clock) *Gate {
	return &Gate{store: s, clock: c, whole: door{failures: enough - 1}, parts: make(map[store.Part]*door)}
}

// gateOf returns s if it is a gate, and otherwise a gate before it with the clock.
func gateOf(s Store, c *clock) *Gate {
	if g, ok := s.(*Gate); ok {
		return g
	}
	return newGate(s, c)
}

var _ Store = (*Gate)(nil)

// Apply asks the store, or returns a *store.UnavailableError at once while the
// gate is shut.
func (g *Gate) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	r, err := g.ask(ctx, key, p, c, 0, false)
	return r.Result, err
}

// A reply is what became of a command.
type reply struct {
	Reply
	asked           bool  // the store was called; false when the gate was shut
	calls, failures int64 // of the store
}

// ask is Apply with a time-out, if positive, of all that it does but wait for a store that
// moves. Only a failure of the store shuts the gate, not a caller that gave up.
//
// A take that fails is sent once more, over another connection if the store has any. At
// worst the first one was carried out, and what it granted is stranded until it expires.
// So one that is not answered is sent again in half of the time only if it is spare: it
// asks for no more than the requests that wait for it. A store that stands still for a
// moment would else strand a lease of each holder. A return would count twice, so it is
// sent once.
func (g *Gate) ask(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command, timeout time.Duration, spare bool) (reply, error) {
	if c.Op != limiter.Take && c.Op != limiter.Peek {
		return g.call(ctx, key, p, c, timeout)
	}
	first, began := timeout, g.clock.now()
	if spare && g.isFast(timeout) {
		first = timeout / 2
	}
	r, err := g.call(ctx, key, p, c, first)
	left := timeout - time.Duration(g.clock.now()-began)
	if _, lost := unavailableBy(err); !lost || !r.asked || timeout > 0 && left <= 0 || ctx.Err() != nil {
		return r, err
	}
	again, cause := g.call(ctx, key, p, c, left)
	if !again.asked { // the gate is shut by now
		return r, err
	}
	again.calls, again.failures = again.calls+r.calls, again.failures+r.failures
	return again, cause
}

// isFast reports whether half of the time-out is ample for the store, by the time that
// slow replies took of late.
func (g *Gate) isFast(timeout time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slow > 0 && 4*g.slow <= int64(timeout)
}

// call asks the store once.
func (g *Gate) call(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command, timeout time.Duration) (reply, error) {
	v, err := g.enter(key)
	if err != nil {
		return reply{}, err
	}
	reported := false
	defer func() {
		if !reported { // nothing about the store, even by a panic
			g.left(v)
		}
	}()
	r, err := g.apply(ctx, key, p, c, timeout)
	part, unavailable := unavailableBy(err)
	for unavailable && g.moved(ctx, v, c) {
		r, err = g.apply(ctx, key, p, c, timeout)
		part, unavailable = unavailableBy(err)
		v.way++
	}
	switch {
	case err == nil && r.Now > 0: // a return that gets no answer reports no time
		reported = true
		g.succeeded(v, r)
	case unavailable && ctx.Err() == nil:
		reported = true
		g.failed(v, part, err)
	}
	if err != nil {
		r.failures = 1
	}
	return r, err
}

// apply has the store run the command once.
func (g *Gate) apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command, timeout time.Duration) (r reply, err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	// The deadline of what is granted counts from here, before anything is sent.
	r = reply{Reply: Reply{Sent: g.clock.now()}, asked: true, calls: 1}
	r.Result, err = g.store.Apply(ctx, key, p, c)
	r.Received = g.clock.now()
	return r, err
}

// moved reports whether a call that failed is to be made again because the store moved.
// If the first one was carried out, what it granted is stranded; a return would count twice.
func (g *Gate) moved(ctx context.Context, v visit, c limiter.Command) bool {
	r, ok := g.store.(Reconnecting)
	return ok && (c.Op == limiter.Take || c.Op == limiter.Peek) && r.Moved(ctx, v.way)
}

// unavailableBy reports whether the error says that the store is unavailable, and of
// which part it speaks, nil for all of it.
func unavailableBy(err error) (part store.Part, ok bool) {
	u, ok := errors.AsType[*store.UnavailableError](err)
	if !ok {
		return nil, false
	}
	return u.Part, true
}

// A visit is a call that the gate let through.
type visit struct {
	key  store.Key
	era  int
	part *door // of the part that the key is in, nil when none such has failed
	was  int   // its era
	way  uint64
}

// enter admits a call for the key, or says why not.
func (g *Gate) enter(key store.Key) (visit, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look()
	now, v := g.clock.now(), visit{key: key, part: g.doorOf(key), way: g.ways}
	if err := g.whole.shut(now); err != nil {
		return v, err
	}
	if v.part != nil {
		if err := v.part.shut(now); err != nil {
			return v, err
		}
		v.was = v.part.enter()
	}
	v.era = g.whole.enter()
	return v, nil
}

// doubts reports whether the latest call failed that the counter's next one may fail with.
func (g *Gate) doubts(key store.Key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.doorOf(key)
	return !g.whole.since.IsZero() || d != nil && !d.since.IsZero()
}

// closed returns why every call would fail at once, nil when one would not.
func (g *Gate) closed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look()
	return g.whole.shut(g.clock.now())
}

func (g *Gate) succeeded(v visit, r reply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.offset = g.offset.observe(r.Sent, r.Received, r.Now)
	g.seen = max(g.seen, r.Now)
	g.slow = max(r.Received-r.Sent, g.slow-g.slow/8, 1)
	g.whole.succeeded()
	for part := range g.parts {
		if part.Has(v.key) {
			delete(g.parts, part)
		}
	}
}

// failed enters a failure of the part, nil for the whole store.
func (g *Gate) failed(v visit, part store.Part, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.now()
	if part == nil {
		g.whole.failed(v.era, cause, now, g.clock.random)
		g.leftPart(v)
		return
	}
	g.whole.left(v.era)
	d := g.parts[part]
	if d != v.part { // it failed meanwhile, or answered: this says nothing new
		g.leftPart(v)
		return
	}
	if d == nil {
		g.forget(now)
		d = &door{seen: g.seen}
		g.parts[part] = d
	}
	d.failed(v.was, cause, now, g.clock.random)
}

// left ends a call that says nothing about the store.
func (g *Gate) left(v visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.whole.left(v.era)
	g.leftPart(v)
}

func (g *Gate) leftPart(v visit) {
	if v.part != nil {
		v.part.left(v.was)
	}
}

// state returns since when and why the store, or a part of it that may be of the limit,
// is unavailable; the time is zero while it is not.
func (g *Gate) state(limit store.Scope) (since time.Time, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.concern(limit, func(d *door) {
		if d.cause != nil && (cause == nil || d.since.Before(since)) {
			since, cause = d.since, d.cause
		}
	})
	return since, cause
}

// retryAt returns the instant at which calls for the limit may get through again.
func (g *Gate) retryAt(limit store.Scope) (at int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.concern(limit, func(d *door) { at = max(at, d.retryAt) })
	return at
}

// wayLost returns the instant until which there was a way to the store although nothing was
// asked; past when that is not known.
func (g *Gate) wayLost() int64 {
	r, ok := g.store.(Reconnecting)
	if !ok {
		return past
	}
	_, lost := r.Ways()
	if lost.IsZero() {
		return past
	}
	return g.clock.now() - int64(time.Since(lost))
}

// storeClock returns what is known of the store's clock.
func (g *Gate) storeClock() offset {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.offset
}

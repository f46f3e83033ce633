package twotier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// Store is what the engine needs of L2.
type Store interface {
	// Apply runs c for one counter atomically, by the store's own clock, and
	// blocks until the store answered or ctx is done. Command.Memory is the
	// store's to set. A refusal is a Result, not an error. An error means that no
	// decision was reached; it is a *store.UnavailableError when the store could
	// not be reached or did not answer in time.
	Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
}

// A Breaker is a circuit breaker in front of a store. While the store is unavailable, one
// request at a time finds out whether it still is, and the others fail at once
// instead of each waiting for a time-out. The limiters of one store share one
// breaker; a part of the store that alone fails to serve has a circuit of its own. The breaker also
// learns what the store's clock reads.
//
// One failure does not count: a take is sent a second time while its time lasts, and the
// breaker opens when that fails, too, or the next one. For a store that never answered, one
// failure is enough. A take that fails because the store moves waits until it has moved.
type Breaker struct {
	store Store
	clock *clock

	mu         sync.Mutex // guards the rest
	circuit    circuit
	parts      map[store.Part]*circuit // that failed since they last answered
	offset     account.ClockOffset
	seen       limiter.Instant // the latest time the store reported
	floor      limiter.Instant // by the store's clock; see account.StoreTime
	latency    int64           // how long slow replies take, by the latest ones; 0 before the first
	connection uint64          // number of the store's connection, as last looked at
	local      account.LocalWindows
}

// NewBreaker returns a breaker in front of s, which is thought available.
func NewBreaker(s Store) *Breaker { return newBreaker(s, &process) }

func newBreaker(s Store, c *clock) *Breaker {
	return &Breaker{store: s, clock: c, circuit: circuit{failures: failuresToOpen - 1}, parts: make(map[store.Part]*circuit)}
}

// breakerOf returns s if it is a breaker, and otherwise a breaker in front of it with the clock.
func breakerOf(s Store, c *clock) *Breaker {
	if b, ok := s.(*Breaker); ok {
		return b
	}
	return newBreaker(s, c)
}

var _ Store = (*Breaker)(nil)

// Apply asks the store, or returns a *store.UnavailableError at once while the
// breaker is open.
func (b *Breaker) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	r, err := b.ask(ctx, key, p, c, 0, false)
	return r.Result, err
}

// A callResult is what became of a command.
type callResult struct {
	account.Reply
	asked           bool  // the store was called; false when the breaker was open
	calls, failures int64 // of the store
}

// ask is Apply with a time-out, if positive, of all that it does but wait for a store that
// moves. Only a failure of the store opens the breaker, not a caller that gave up.
//
// A take that fails is sent once more, over another connection if the store has any. At
// worst the first one was carried out, and what it granted is stranded until it expires.
// So one that is not answered is sent again in half of the time only if it is spare: it
// asks for no more than the requests that wait for it. A store that stands still for a
// moment would else strand a lease of each holder. A return would count twice, so it is
// sent once.
func (b *Breaker) ask(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command, timeout time.Duration, spare bool) (callResult, error) {
	if c.Op != limiter.Take && c.Op != limiter.Peek {
		return b.call(ctx, key, p, c, timeout)
	}
	first, began := timeout, b.clock.now()
	if spare && b.isFast(timeout) {
		first = timeout / 2
	}
	r, err := b.call(ctx, key, p, c, first)
	left := timeout - min(time.Duration(b.clock.now()-began), first) // longer than first is starved; see monotonic.Within
	if _, lost := unavailableBy(err); !lost || !r.asked || timeout > 0 && left <= 0 || ctx.Err() != nil {
		return r, err
	}
	again, cause := b.call(ctx, key, p, c, left)
	if !again.asked { // the breaker is open by now
		return r, err
	}
	again.calls, again.failures = again.calls+r.calls, again.failures+r.failures
	return again, cause
}

// isFast reports whether half of the time-out is ample for the store, by the time that
// slow replies took of late.
func (b *Breaker) isFast(timeout time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.latency > 0 && 4*b.latency <= int64(timeout)
}

// call asks the store once.
func (b *Breaker) call(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command, timeout time.Duration) (callResult, error) {
	v, err := b.admit(key)
	if err != nil {
		return callResult{}, err
	}
	reported := false
	defer func() {
		if !reported { // nothing about the store, even by a panic
			b.release(v)
		}
	}()
	r, err := b.apply(ctx, key, p, c, timeout)
	part, unavailable := unavailableBy(err)
	for unavailable && b.moved(ctx, v, c) {
		r, err = b.apply(ctx, key, p, c, timeout)
		part, unavailable = unavailableBy(err)
		v.connection++
	}
	switch {
	case err == nil && r.Now > 0: // a return that gets no answer reports no time
		reported = true
		b.succeeded(v, r)
	case unavailable && ctx.Err() == nil:
		reported = true
		b.failed(v, part, err)
	}
	if err != nil {
		r.failures = 1
	}
	return r, err
}

// apply has the store run the command once.
func (b *Breaker) apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command, timeout time.Duration) (r callResult, err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = b.clock.patiently(ctx, timeout)
		defer cancel()
	}
	// The deadline of the grant counts from here, before anything is sent.
	r = callResult{Reply: account.Reply{Sent: b.clock.now()}, asked: true, calls: 1}
	r.Result, err = b.store.Apply(ctx, key, p, c)
	r.Received = b.clock.now()
	return r, err
}

// moved reports whether a call that failed is to be made again because the store moved.
// If the first one was carried out, what it granted is stranded; a return would count twice.
func (b *Breaker) moved(ctx context.Context, v admission, c limiter.Command) bool {
	r, ok := b.store.(Reconnecting)
	return ok && (c.Op == limiter.Take || c.Op == limiter.Peek) && r.Moved(ctx, v.connection)
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

// An admission is a call that the breaker let through.
type admission struct {
	key        store.Key
	epoch      int
	part       *circuit // of the part that the key is in, nil when none such has failed
	partEpoch  int      // its epoch
	connection uint64
}

// admit admits a call for the key, or says why not.
func (b *Breaker) admit(key store.Key) (admission, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checkConnection()
	now, v := b.clock.now(), admission{key: key, part: b.partCircuit(key), connection: b.connection}
	if err := b.circuit.check(now); err != nil {
		return v, err
	}
	if v.part != nil {
		if err := v.part.check(now); err != nil {
			return v, err
		}
		v.partEpoch = v.part.admit()
	}
	v.epoch = b.circuit.admit()
	return v, nil
}

// failedLast reports whether the latest call failed that the counter's next one may fail with.
func (b *Breaker) failedLast(key store.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.partCircuit(key)
	return !b.circuit.since.IsZero() || c != nil && !c.since.IsZero()
}

// unavailable returns why every call would fail at once, nil when one would not.
func (b *Breaker) unavailable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checkConnection()
	return b.circuit.check(b.clock.now())
}

func (b *Breaker) succeeded(v admission, r callResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offset = b.offset.Observe(r.Sent, r.Received, r.Now)
	b.seen = max(b.seen, r.Now)
	b.latency = max(r.Received-r.Sent, b.latency-b.latency/8, 1)
	b.circuit.succeeded()
	for part := range b.parts {
		if part.Has(v.key) {
			delete(b.parts, part)
		}
	}
}

// failed records a failure of the part, nil for the whole store.
func (b *Breaker) failed(v admission, part store.Part, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.now()
	if part == nil {
		b.circuit.failed(v.epoch, cause, now, b.clock.random)
		b.releasePart(v)
		return
	}
	b.circuit.release(v.epoch)
	c := b.parts[part]
	if c != v.part { // it failed meanwhile, or answered: this says nothing new
		b.releasePart(v)
		return
	}
	if c == nil {
		b.dropIdleParts(now)
		c = &circuit{seen: b.seen}
		b.parts[part] = c
	}
	c.failed(v.partEpoch, cause, now, b.clock.random)
}

// release ends a call that says nothing about the store.
func (b *Breaker) release(v admission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.circuit.release(v.epoch)
	b.releasePart(v)
}

func (b *Breaker) releasePart(v admission) {
	if v.part != nil {
		v.part.release(v.partEpoch)
	}
}

package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// failuresToOpen is how many failures in a row, each of a call that began when the one before
// was known, open a circuit. One alone may be a reply that got lost, on a connection that
// broke, say.
const failuresToOpen = 2

// How long a circuit stays open after a failure: shortly at first, then at least a
// second between two probes. Up to half as much again is added at random, so
// that a fleet does not return in step.
const (
	minRetry = 100 * time.Millisecond
	maxRetry = time.Second
)

// A circuit is what is known of the availability of a store, or of a part of it. The zero
// value is closed: calls are admitted.
type circuit struct {
	cause    error     // why it is open, nil while it is closed
	since    time.Time // of the first failure
	failures int       // in a row
	retryAt  int64     // instant of the next probe, of the last failure while it is closed
	probing  bool      // a probe is in progress
	epoch    int       // counts what failures and successes changed
	// seen, of a part, is the latest time that the store reported before it failed:
	// nothing of the part was granted later.
	seen limiter.Instant
}

// check returns why no call is admitted at the instant now, nil when one is.
func (c *circuit) check(now int64) error {
	if c.cause != nil && (c.probing || now < c.retryAt) {
		return c.cause
	}
	return nil
}

// admit admits a call, and returns the epoch it belongs to.
func (c *circuit) admit() (era int) {
	c.probing = c.cause != nil
	return c.epoch
}

// succeeded closes the circuit, for whatever else is in progress, too.
func (c *circuit) succeeded() {
	if c.failures > 0 {
		*c = circuit{epoch: c.epoch + 1}
	}
}

// failed records a failure of a call of the epoch at the instant now, and opens the circuit
// for some time if it is one too many. Calls that began before what is known by now
// say nothing new.
func (c *circuit) failed(era int, cause error, now int64, random func(int64) int64) {
	if era != c.epoch {
		return
	}
	if c.since.IsZero() {
		c.since = time.Now()
	}
	if c.cause == nil {
		c.epoch++
	}
	c.failures++
	c.probing, c.retryAt = false, now
	if c.failures >= failuresToOpen {
		wait := min(minRetry<<min(c.failures-failuresToOpen, 10), maxRetry)
		c.cause, c.retryAt = cause, now+int64(wait)+random(int64(wait)/2)
	}
}

// release ends a call of the epoch that says nothing.
func (c *circuit) release(era int) {
	if era == c.epoch {
		c.probing = false
	}
}

// partTTL is how long a part is remembered that nobody asks for any more.
const partTTL = time.Minute

// partCircuit returns the circuit of the part that the key is in, nil when none such has failed;
// mu is held.
func (b *Breaker) partCircuit(key store.Key) *circuit {
	for part, c := range b.parts {
		if part.Has(key) {
			return c
		}
	}
	return nil
}

// dropIdleParts drops parts that nobody asks for any more; mu is held.
func (b *Breaker) dropIdleParts(now int64) {
	for part, c := range b.parts {
		if !c.probing && now-c.retryAt > int64(partTTL) {
			delete(b.parts, part)
		}
	}
}

// eachCircuit calls f for the circuits of the store and of its parts but for other limits; mu
// is held.
func (b *Breaker) eachCircuit(limit store.Scope, f func(*circuit)) {
	f(&b.circuit)
	for part, c := range b.parts {
		if other, ok := part.(store.Scope); !ok || other == limit {
			f(c)
		}
	}
}

// state returns since when and why the store, or a part of it that may be of the limit,
// is unavailable; the time is zero while it is not.
func (b *Breaker) state(limit store.Scope) (since time.Time, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eachCircuit(limit, func(c *circuit) {
		if c.cause != nil && (cause == nil || c.since.Before(since)) {
			since, cause = c.since, c.cause
		}
	})
	return since, cause
}

// retryAt returns the instant at which calls for the limit may get through again.
func (b *Breaker) retryAt(limit store.Scope) (at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eachCircuit(limit, func(c *circuit) { at = max(at, c.retryAt) })
	return at
}

package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// enough is how many failures in a row, each of a call that began when the one before
// was known, shut a door. One alone may be a reply that got lost, on a connection that
// broke, say.
const enough = 2

// How long a door stays shut after a failure: shortly at first, then at least a
// second between two probes. Up to half as much again is added at random, so
// that a fleet does not return in step.
const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = time.Second
)

// A door is what is known of the availability of a store, or of a part of it. The zero
// value is open.
type door struct {
	cause    error     // why it is shut, nil while it is not
	since    time.Time // of the first failure
	failures int       // in a row
	retryAt  int64     // instant of the next probe, of the last failure while it is open
	probing  bool      // a probe is under way
	era      int       // counts what failures and successes changed
	// seen, of a part, is the latest time that the store reported before it failed:
	// nothing of the part was granted later.
	seen limiter.Instant
}

// shut returns why no call is admitted at the instant now, nil when one is.
func (d *door) shut(now int64) error {
	if d.cause != nil && (d.probing || now < d.retryAt) {
		return d.cause
	}
	return nil
}

// enter admits a call, and returns the era it belongs to.
func (d *door) enter() (era int) {
	d.probing = d.cause != nil
	return d.era
}

// succeeded opens the door, for whatever else is under way, too.
func (d *door) succeeded() {
	if d.failures > 0 {
		*d = door{era: d.era + 1}
	}
}

// failed enters a failure of a call of the era at the instant now, and shuts the door
// for some time if it is one too many. Calls that began before what is known by now
// say nothing new.
func (d *door) failed(era int, cause error, now int64, random func(int64) int64) {
	if era != d.era {
		return
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	if d.cause == nil {
		d.era++
	}
	d.failures++
	d.probing, d.retryAt = false, now
	if d.failures >= enough {
		wait := min(firstRetry<<min(d.failures-enough, 10), longestRetry)
		d.cause, d.retryAt = cause, now+int64(wait)+random(int64(wait)/2)
	}
}

// left ends a call of the era that says nothing.
func (d *door) left(era int) {
	if era == d.era {
		d.probing = false
	}
}

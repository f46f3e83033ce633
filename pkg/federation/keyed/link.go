package keyed

import (
	"math/rand/v2"
	"time"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// firstRetry is how long after a failure the coordinator is tried again; the time doubles
// from failure to failure. Up to half as much again is added at random, so that regions do
// not return in step.
const firstRetry = 100 * time.Millisecond

// A link is what is known of the coordinator.
type link struct {
	answered bool      // ever
	cause    error     // why the last message failed, nil when it did not
	since    time.Time // when it began to be so
	failures int       // in a row
	retryAt  int64     // instant of the next attempt

	refused refusal
	shown   shown
	crowd   keys.Crowd
}

// A refusal is why the coordinator grants nothing of any key.
type refusal struct {
	reason ledger.Reason // 0 for none
	until  int64
}

// shown is what the coordinator's clock read.
type shown struct {
	at    int64 // instant of the own clock before which it did
	clock limiter.Instant
}

// fail notes a failure.
func (l *link) fail(now int64, err error, longest time.Duration) (first bool) {
	if first = l.cause == nil; first {
		l.since = time.Now()
	}
	pause := min(firstRetry<<min(l.failures, 10), longest)
	l.cause, l.failures = err, l.failures+1
	l.retryAt = now + int64(pause) + rand.Int64N(int64(pause)/2+1)
	return first
}

// hear takes note of an answer to a message that was sent at an instant.
func (l *link) hear(reply *keys.Reply, sent, now int64) {
	if !l.answered || l.cause != nil {
		l.since = time.Now()
	}
	l.answered, l.cause, l.failures = true, nil, 0
	l.refused = refusal{}
	if reply.Reason != ledger.Granted {
		l.refused = refusal{reason: reply.Reason, until: now + min(nanos(reply.RetryAfter), longestRefusal)}
	}
	l.shown = shown{at: sent, clock: reply.Now}
	if reply.Reason == ledger.Granted {
		l.crowd = l.crowd.Hear(reply.Epoch.Index, reply.Room)
	}
}

// longestRefusal is how long it is believed that no key is granted anything: what the budget
// is divided by may be edited at any time.
const longestRefusal = int64(time.Second)

func nanos(d limiter.Micros) int64 { return int64(d) * int64(time.Microsecond) }

func micros(d int64) limiter.Micros { return limiter.Micros(d / int64(time.Microsecond)) }

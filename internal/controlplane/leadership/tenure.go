package leadership

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Note is what the last write of the Lease says of the clock of the leader that wrote it.
type Note struct {
	Clock limiter.Instant // what the leader's clock showed, 0 when the Lease does not say
	Wall  limiter.Instant // what the clock of its node showed, 0 when the Lease does not say
	Held  bool            // the write did not release the lock
}

// Past returns what the Lease says to another process, when a renewal counts for hold. A
// leader of a version that leases no clock served by its wall clock; it may have left the
// clock of one before. One that released the lock served nothing afterwards.
func (n Note) Past(hold limiter.Micros) Past {
	past := Past{Renewed: n.Clock, Served: max(n.Clock, n.Wall)}
	if n.Held && past.Served > 0 {
		past.Served = past.Served.Add(hold)
	}
	return past
}

// A Past is what a process knows of the leaders before.
type Past struct {
	// Renewed is what the last one's clock showed when it last renewed: until then it
	// served. It is 0 when the Lease does not say.
	Renewed limiter.Instant
	// Served is the newest instant that any of them may have served: the next leader's
	// clock starts there or later.
	Served limiter.Instant
	// Overlap is how long a leader that this process does not know may go on serving,
	// because there was no Lease; otherwise 0.
	Overlap limiter.Micros
}

// WithoutLease returns what is known when there is no Lease any more: a leader may have
// renewed it since this process looked, and hold it still.
func (p Past) WithoutLease(hold limiter.Micros) Past {
	if p.Overlap > 0 {
		return p
	}
	p.Overlap, p.Served = hold, p.Served.Add(hold)
	return p
}

// A Renewal is a write that made a process the holder of the lock.
type Renewal struct {
	Sent  time.Duration   // since boot, before the write was sent
	Clock limiter.Instant // what the leader's clock showed after that, as it is written
}

// Holds reports whether no other process can hold the lock, when a renewal counts for hold.
func (r Renewal) Holds(sinceBoot, hold time.Duration) bool { return sinceBoot-r.Sent < hold }

// Covers reports whether it holds, and no leader after this one serves the instant.
func (r Renewal) Covers(at limiter.Instant, sinceBoot, hold time.Duration) bool {
	return r.Holds(sinceBoot, hold) && at < r.Clock.Add(micros(hold))
}

func micros(d time.Duration) limiter.Micros { return limiter.Micros(d.Microseconds()) }

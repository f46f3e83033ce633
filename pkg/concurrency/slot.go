package concurrency

import (
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// A Slot is one request in flight. It has to be released. The zero Slot holds nothing.
// It has no more words than are passed in registers.
type Slot struct {
	epoch     *epoch // in which it was given; nil: it holds nothing
	ticket    slots.Ticket
	key       string
	forwarded int64
}

// Outcome says how a request ended.
type Outcome uint8

// The outcomes.
const (
	Served  Outcome = iota // its latency says how loaded the backend is
	Ignored                // its latency says nothing: it never reached the backend, or its client went away
	Dropped                // the backend failed it for overload, or did not answer in time
)

// Forward says that the request is forwarded only now: latency counts from here, not
// from when it was admitted.
func (s *Slot) Forward() {
	if s.epoch != nil {
		s.forwarded = s.epoch.guard.clock.Now()
	}
}

// Fenced returns a channel that is closed when the request has to be ended, because the
// guard's share expired and Config.OnFenced is Abort.
func (s *Slot) Fenced() <-chan struct{} {
	if s.epoch == nil {
		return nil
	}
	return s.epoch.aborted
}

// Lapsed reports whether the guard was fenced since it gave the slot: others may have been
// granted what the slot is of, so a request that is not forwarded yet has to give it back.
func (s *Slot) Lapsed() bool {
	if s.epoch == nil {
		return false
	}
	g := s.epoch.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fence(g.clock.Now())
	return g.epoch != s.epoch
}

// Release gives the slot back, to the first that waits for one. Only the first call
// does, on whichever copy.
func (s *Slot) Release(o Outcome) {
	if s.epoch == nil {
		return
	}
	g := s.epoch.guard
	now := g.clock.Now() // before the lock, which is not part of the latency
	g.mu.Lock()
	defer g.mu.Unlock()
	use, ok := g.table.Release(s.ticket)
	if !ok {
		return
	}
	if g.keys != nil {
		g.keys.Release(s.key)
	}
	if o != Ignored {
		took := micros(time.Duration(now - s.forwarded))
		g.law.Sample(g.instant(now), took, adaptive.Use(use), o == Dropped)
	}
	if g.table.Waiting() > 0 {
		now = g.clock.Now() // the share may have expired while the lock was waited for
	}
	g.freed(now)
}

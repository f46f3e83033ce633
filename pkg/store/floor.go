package store

import (
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
)

// driftParts is the inverse of the rate by which the clocks of a holder and of a store
// may part: one part in a thousand, twice what NTP corrects a clock by.
const driftParts = 1000

// A Reading is what a holder knows of a store's clock: the newest instant that it has
// certainly reached. It goes into limiter.Command.Floor, so that a store that lost its
// memory while its clock was set back serves this holder no window a second time. It is a
// value; the zero Reading knows nothing.
//
// The local instants are nanoseconds of a clock that never goes back and never runs ahead
// of true time by more than driftParts: one that stands still while the machine is
// suspended will do, one that catches up later will not.
type Reading struct {
	seen limiter.Instant // that the store's clock had reached ...
	at   int64           // ... at this local instant
	held bool            // it may stand still, or was found behind seen and has not caught up yet

	behind limiter.Instant // the newest instant that it may have been found behind
}

// At returns the newest instant that the store's clock has certainly reached at the
// local instant sent, 0 when nothing is known. It grows with the local clock, a little
// more slowly, except after Pause and while the store's clock has to catch up: from what
// it was, the rest of the past cannot be guessed.
func (r Reading) At(sent int64) limiter.Instant {
	if r.seen == 0 || r.held || sent <= r.at {
		return r.seen
	}
	elapsed := (sent - r.at) / 1000 // microseconds
	elapsed -= (elapsed + driftParts - 1) / driftParts
	return r.seen.Add(limiter.Micros(elapsed))
}

// Observe returns what is known after a reply that was received at a local instant, in
// which the store says that its clock shows now.
func (r Reading) Observe(now limiter.Instant, received int64) Reading {
	if now >= r.At(received) {
		r.seen, r.at, r.held = now, received, false
	}
	return r
}

// Looked returns what is known after the store was asked what its clock shows, and nothing
// else, at a local instant.
func (r Reading) Looked(now limiter.Instant, sent, received int64) Reading {
	if reached := r.At(sent); now < reached {
		return r.Freeze(reached, received)
	}
	return r.Observe(now, received)
}

// Pause returns what is known when another process may keep the store's clock from now
// on: that starts after all that was served, and need not have gone on meanwhile. The
// floor stays at the newest instant that a reply showed, until the next one comes.
func (r Reading) Pause() Reading {
	r.held = true
	return r
}

// Freeze returns what is known when the store's clock is found, by a reply that was
// received at a local instant, behind one that it had reached. The floor stays there until
// Observe sees that the clock has caught up.
func (r Reading) Freeze(reached limiter.Instant, received int64) Reading {
	r.behind = max(r.behind, reached, r.latest(received))
	r.seen, r.held = max(r.seen, reached), true
	return r
}

// latest returns the newest instant that the store's clock may have reached at a local
// instant, if it was not set ahead.
func (r Reading) latest(at int64) limiter.Instant {
	if r.seen == 0 || r.held || at <= r.at {
		return r.seen
	}
	elapsed := (at-r.at)/1000 + 1
	elapsed += (elapsed + driftParts - 1) / driftParts
	return r.seen.Add(limiter.Micros(elapsed))
}

// Answered returns what is known after the result of a command was received at a local
// instant. The command is the caller's, whose own floor may be ahead of what the store's
// clock ever showed: what follows from that one alone is not noted.
func (r Reading) Answered(c limiter.Command, res limiter.Result, received int64) Reading {
	switch reached := res.Now.Add(res.RetryAfter); {
	case res.Reason == limiter.ClockBehind && reached > c.Floor:
		return r.Freeze(reached, received)
	case res.Reason == limiter.ClockBehind && res.Now < r.seen:
		return r.Freeze(r.seen, received)
	default:
		return r.Observe(res.Now, received)
	}
}

// Behind returns the newest instant that the store's clock may have reached before it was
// found behind, 0 when it never was. If the store lost its memory then, it does not know what was
// granted of the windows that had begun by that instant. The floor keeps the holder from the open
// one only until the clock has caught up, which is in the midst of it.
func (r Reading) Behind() limiter.Instant { return r.behind }

// A Floor is a Reading that several goroutines share. A store has one for each clock that
// it decides by. The zero Floor knows nothing.
type Floor struct {
	mu      sync.Mutex
	reading Reading
}

// Reached is what somebody else knows of a store's clock.
type Reached struct {
	Now limiter.Instant // that it has certainly reached
	// Doubtful is above 0 when the store lost its memory while its clock was set back: it
	// does not know what it granted of windows that had begun by that instant.
	Doubtful limiter.Instant
}

// At is that of the Reading.
func (f *Floor) At(sent int64) limiter.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reading.At(sent)
}

// Observe is that of the Reading.
func (f *Floor) Observe(now limiter.Instant, received int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading = f.reading.Observe(now, received)
}

// Looked is that of the Reading.
func (f *Floor) Looked(now limiter.Instant, sent, received int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading = f.reading.Looked(now, sent, received)
}

// Pause is that of the Reading.
func (f *Floor) Pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading = f.reading.Pause()
}

// Freeze is that of the Reading.
func (f *Floor) Freeze(reached limiter.Instant, received int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading = f.reading.Freeze(reached, received)
}

// Behind is that of the Reading.
func (f *Floor) Behind() limiter.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reading.Behind()
}

// Answered is that of the Reading.
func (f *Floor) Answered(c limiter.Command, res limiter.Result, received int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading = f.reading.Answered(c, res, received)
}

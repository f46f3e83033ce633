package store

import "github.com/weir-dev/weir/pkg/limiter"

// A Recollection is what a holder knows of the memories of a store that may have had
// several. Its floor keeps it from a window that the memory before may have served only
// until the clock has caught up, which may be in the midst of that window; and not at all
// when the clock was set right before the holder asked. It is a value; the zero
// Recollection knows of no memory.
type Recollection struct {
	Since    limiter.Instant // start of the memory that answered last, 0 when none did
	Shown    limiter.Instant // the newest instant by which that memory answered
	Doubtful limiter.Instant // up to which memories before that one may have granted
	Behind   limiter.Instant // doubtful, should another memory answer: Reading.Behind
	// Newest is Since of the newest memory that answered, or later when one answered that
	// another had followed: as an old primary does that Sentinels promote once more.
	Newest limiter.Instant
}

// Vouches reports whether a limit that was born in the memory that answers next has
// forgotten nothing. It has when no other one followed that memory: one that is neither the
// one that answered last nor a younger one was not the only one to grant since.
func (r Recollection) Vouches(begun limiter.Instant) bool {
	return r.Since >= r.Newest && begun >= r.Since
}

// Forgot returns the instant before which the memory that began at begun may not know what
// was granted: limiter.Memory.Since for this holder.
func (r Recollection) Forgot(begun limiter.Instant) limiter.Instant {
	known := max(begun, r.Doubtful)
	if r.Since > 0 && r.Since != begun {
		known = max(known, r.Past())
	}
	return known
}

// Past returns the instant before which the memory that answered last may have granted, as
// far as the holder knows: at Behind and at Shown, too. It is 0 when nothing is known.
func (r Recollection) Past() limiter.Instant {
	known := r.Behind
	if r.Since > 0 {
		known = max(known, r.Shown)
	}
	if known == 0 {
		return 0
	}
	return known + 1
}

// Answered returns what is known once the memory that began at begun has answered, by a
// clock that showed now.
func (r Recollection) Answered(begun, now limiter.Instant) Recollection {
	if r.Since != begun {
		if r.Since > 0 {
			r.Doubtful = max(r.Doubtful, r.Past())
		}
		r.Since, r.Shown, r.Newest = begun, now, max(begun, r.Newest+1)
	}
	r.Shown = max(r.Shown, now)
	return r
}

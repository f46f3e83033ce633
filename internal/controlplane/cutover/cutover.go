package cutover

import (
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Phase is a step of a move.
type Phase string

// The phases.
const (
	Serving  Phase = "Serving"  // the active store is asked
	Draining Phase = "Draining" // no store is asked
)

const (
	// drainTime is how long draining may take. It is the longest that a move can
	// keep requests from being admitted before it is taken back.
	drainTime = 10 * time.Second
	// firstRetry and longestRetry space moves that were taken back.
	firstRetry   = 30 * time.Second
	longestRetry = 10 * time.Minute
)

// A State is how far a move is. The zero value serves.
type State struct {
	Phase  Phase
	Since  time.Time // the phase began
	Failed int       // moves that were taken back in a row
}

// A View is what is known when the next step is decided.
type View struct {
	Now time.Time
	// Wanted says that another store than the active one is to serve.
	Wanted bool
	// Same says that the wanted store is the active one, reached in another way: what
	// it granted it knows, so nobody has to let go of it.
	Same bool
	// Unknown says that no record names the store that served, so that there is none to go
	// back to.
	Unknown bool
	// Lagging names the holders that have not acknowledged the present phase, in a
	// phrase; empty when all have.
	Lagging string
	// Clock is the time on the wanted store, read after Lagging was empty, or at any
	// time when it is the same; ClockErr says why it cannot be had.
	Clock    limiter.Instant
	ClockErr error
}

// A Step is what follows from a view.
type Step struct {
	State State
	// Moved says that the wanted store is the active one from now on. It serves what begins
	// at At or later on its own clock. For the same store At is 0, and it serves what it
	// served before.
	Moved bool
	At    limiter.Instant
	// Again is when to decide again although nothing happens, zero when it need not
	// be.
	Again time.Duration
	// Message says what is waited for, empty when nothing is.
	Message string
}

// Next returns the step that follows in state s.
//
//	phase     view                                     step
//	Serving   nothing wanted                           serve
//	any       the same store, reached otherwise        serve from it once it answers
//	Serving   a move failed a short time ago           serve, try again
//	Serving   holders lag, or no clock                 serve, wait for them
//	Serving   all acknowledged, the new store answers  drain
//	Draining  no other store wanted any more           serve from the active store
//	Draining  holders lag, or no clock                 drain, wait; after drainTime serve, try again,
//	                                                   unless no store is known to have served
//	Draining  all drained, the clock was read          serve from the wanted store
func Next(s State, v View) Step {
	switch {
	case v.Wanted && v.Same:
		return reach(s, v)
	case s.Phase == Draining:
		return drain(s, v)
	}
	s.Phase = Serving
	wait := s.retryAt().Sub(v.Now)
	switch {
	case !v.Wanted:
		return Step{State: State{Phase: Serving, Since: s.Since}}
	case wait > 0:
		return Step{State: s, Again: wait, Message: "the move was taken back, as a sidecar or the new store did not answer in time; trying again at " + s.retryAt().UTC().Format(time.TimeOnly) + " UTC"}
	case v.Lagging != "":
		return Step{State: s, Message: "before the stores can be exchanged, every sidecar has to acknowledge the policy: " + v.Lagging}
	case v.ClockErr != nil:
		return Step{State: s, Again: retryClock, Message: "waiting for " + newStore(v)}
	}
	return Step{
		State:   State{Phase: Draining, Since: v.Now, Failed: s.Failed},
		Again:   drainTime,
		Message: "sidecars stop asking the old store",
	}
}

// retryClock is how long a store that did not answer is left alone.
const retryClock = 5 * time.Second

// reach goes over to another way to the active store. One that does not work is not
// gone.
func reach(s State, v View) Step {
	serve := State{Phase: Serving, Since: s.Since}
	if s.Phase == Draining {
		serve.Since = v.Now
	}
	if v.ClockErr != nil {
		return Step{State: serve, Again: retryClock, Message: "waiting for " + newStore(v)}
	}
	return Step{State: serve, Moved: true}
}

func drain(s State, v View) Step {
	serve := State{Phase: Serving, Since: v.Now}
	left := drainTime - v.Now.Sub(s.Since)
	switch {
	case !v.Wanted:
		return Step{State: serve}
	case v.Lagging == "" && v.ClockErr == nil:
		// The old store may have served up to the very instant that was read.
		return Step{State: serve, Moved: true, At: v.Clock + 1}
	case v.Unknown:
		return Step{State: s, Again: retryClock, Message: "it is not known which store served, so nothing is admitted until every sidecar has stopped asking it; " +
			"waiting for " + waitedFor(v)}
	case left <= 0:
		serve.Failed = s.Failed + 1
		return Step{State: serve, Again: serve.retryAt().Sub(v.Now), Message: "the move is taken back: " + waitedFor(v)}
	}
	return Step{State: s, Again: min(left, retryClock), Message: "sidecars stop asking the old store; waiting for " + waitedFor(v)}
}

func waitedFor(v View) string {
	if v.Lagging != "" {
		return v.Lagging
	}
	return newStore(v)
}

func newStore(v View) string {
	return fmt.Sprintf("the new store, which does not answer: %v", v.ClockErr)
}

// retryAt returns when a move may begin.
func (s State) retryAt() time.Time {
	if s.Failed == 0 {
		return time.Time{}
	}
	return s.Since.Add(min(firstRetry<<min(s.Failed-1, 10), longestRetry))
}

package twotier

import (
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// neverLow is below every number of credits.
const neverLow = -1

// jitter is by how much replies may differ in when they say that a window ends.
const jitter = int64(10 * time.Millisecond)

// relent is how long a refusal is remembered that names no time of its own.
const relent = time.Second

// The terms of a lease are what a reply said beside the number of credits: what
// they are charged to, what a client is told, and what the store would go on
// refusing. They are immutable, and leases of many keys share them.
type terms struct {
	limiter  *Limiter
	settings *settings        // under which the store was asked
	windows  *limiter.Windows // of the credits; nil before the first reply

	limit    int64 // of the rate that binds
	resets   int64 // instant at which nothing counts any more of that rate
	lowWater int64 // credits at which the next lease is asked for ahead of need

	// A cost of need or more is refused until the instant until, so that a budget
	// that is used up costs one round trip, not one a request. Other settings may
	// fare better.
	need   int64
	until  int64
	reason limiter.Reason
	final  bool // it will never be granted
	byTime bool // the credits are time-coupled
	counts bool // what is refused is counted

	at      limiter.Instant // of the grant, if it is time-coupled
	carried int64           // credits that may be of windows that are over
	ends    int64           // no later than the first window's end
}

// charge returns what the credits of the lease are charged to.
func (t *terms) charge() Charge {
	c := Charge{At: t.at, ByTime: t.byTime}
	if t.windows != nil {
		c.Windows = *t.windows
	}
	return c
}

// charged returns the terms for credits that are charged as those of h.
func (t terms) charged(h Holding) terms {
	if h.Windows.N > 0 {
		t.windows = t.limiter.share(h.Windows)
	}
	t.byTime, t.at, t.carried = h.ByTime, h.At, h.Carried
	return t
}

// refuses reports whether a refusal is remembered.
func (t *terms) refuses() bool { return t.until != past }

// termsOf reads a reply to a command under the settings, after which the key
// holds h in front, if its credits are alive. A reply that names no windows leaves what was known.
func (s *settings) termsOf(take limiter.Command, r *reply, h Holding, known *terms) *terms {
	l := known.limiter
	t := *s.blank
	t.counts = s.learns()
	if r.Windows.N == 0 {
		t.windows, t.limit, t.resets, t.ends = known.windows, known.limit, known.resets, known.ends
		if t.windows == nil {
			t.windows, t.limit = l.windows.latest.Load(), largestCost(s.Params)
		}
	} else {
		t.windows, t.limit = l.share(r.Windows), r.Limit
		// The store told its time before the reply was received, so what counts ends
		// no later than this, and no earlier than if it had been when it was sent.
		t.resets, t.ends = r.received+nanos(r.ResetAfter), r.sent+nanos(r.ExpiresIn)
	}
	t = t.charged(h)
	t.remember(take, r)
	if s.LowWater > 0 && !t.refuses() {
		t.lowWater = s.LowWater
	}
	if t.refuses() {
		return l.refusing.share(t)
	}
	return l.granting.share(t)
}

// remember notes what the store would refuse after a reply.
func (t *terms) remember(take limiter.Command, r *reply) {
	// A refusal counts from the instant it was received: windows end no later.
	until, need := r.received+nanos(r.RetryAfter), take.Min
	switch r.Reason {
	case limiter.Granted:
		if r.Remaining > 0 || !r.Algorithm.WindowCoupled() {
			return
		}
		// The grant took the rest of a window, so the next answer is known already.
		t.until, t.need, t.reason = t.resets, 1, limiter.Exhausted
		return
	case limiter.Exhausted:
		need = least(take.Min, r)
	case limiter.TooLarge:
		t.final = true
	case limiter.ClockBehind:
		// The wait is what the clock was set back, and it may be set right again.
		until, need = min(until, r.received+int64(relent)), 1
	case limiter.StaleGeneration:
		need = 1
	case limiter.Amnesia, limiter.Forfeited:
	}
	if until == r.received {
		until += int64(relent)
	}
	if r.RetryAfter == r.ResetAfter && r.Windows.N > 0 {
		until = t.resets // which is shared
	}
	t.until, t.need, t.reason = until, need, r.Reason
}

// least returns the least cost that is refused as long as amount is: the one that
// a window which ends no earlier has not left. Algorithms without windows may grant
// less sooner, and so may a window that is split.
func least(amount int64, r *reply) int64 {
	if !r.Algorithm.WindowCoupled() {
		return amount
	}
	need := amount
	for _, w := range r.Windows.Slice() {
		if w.End().Sub(r.Now) >= r.RetryAfter {
			need = min(need, max(0, w.Limit-w.Granted)+1)
		}
	}
	return need
}

// shared saves copies of equal values: a run of them is one object.
type shared[T comparable] struct {
	latest atomic.Pointer[T]
}

// share returns a pointer to a value equal to v, which must not be changed.
func (s *shared[T]) share(v T) *T {
	if latest := s.latest.Load(); latest != nil && *latest == v {
		return latest
	}
	s.latest.Store(&v)
	return &v
}

// A sharedTerms is a shared whose values need not be equal in every respect.
type sharedTerms struct{ shared[terms] }

// share returns terms as good as t. Those of the same windows that were received
// a little earlier end what counts a little earlier, and are right, too.
func (s *sharedTerms) share(t terms) *terms {
	last := s.latest.Load()
	if last != nil && last.windows == t.windows && t.windows != nil && !t.byTime &&
		t.resets >= last.resets && t.resets-last.resets <= jitter {
		if t.until == t.resets {
			t.until = last.resets
		}
		t.resets, t.ends = last.resets, last.ends
	}
	return s.shared.share(t)
}

package twotier

import (
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// neverLow is below every number of credits.
const neverLow = -1

// jitter is by how much replies may differ in when they say that a window ends.
const jitter = int64(10 * time.Millisecond)

// A leaseInfo is the part of a lease that is the same for many keys: the answer of the store
// and what the credits are charged to. It is immutable.
type leaseInfo struct {
	limiter  *Limiter
	settings *settings        // under which the store was asked
	windows  *limiter.Windows // of the credits, or else of the answer; nil before the first
	limit    int64            // of the rate that binds
	resets   int64            // instant at which nothing counts any more of that rate
	lowWater int64            // credits at which the next lease is asked for before they are needed
	account.Refusal
	byTime  bool // the credits are time-coupled
	counts  bool // what is refused is counted
	carries bool // the credits outlive their windows

	behind  int64            // credits in the back of the balance, which may pay for a cost
	at      limiter.Instant  // of the grant, if the credits are time-coupled
	carried int64            // credits that may be of windows that are over
	open    *limiter.Windows // of the answer; nil before the first
	ends    int64            // see account.Answer.Ends
}

// infoOf returns the shared part of an account.
func (l *Limiter) infoOf(s *settings, a *account.State, now int64) *leaseInfo {
	t := *s.blank
	t.counts, t.carries = s.Learn(), s.Expiry == CarryOver
	t.limit, t.resets, t.ends, t.Refusal = a.Limit, a.Resets, a.Ends, a.Refusal
	if a.Answer.Windows.N > 0 {
		t.open = l.windows.intern(a.Answer.Windows)
		t.windows = t.open
	}
	if a.Front.Held(now) > 0 {
		t.windows = l.windows.intern(a.Front.Windows)
	}
	t.byTime, t.at, t.carried = a.Front.ByTime, a.Front.At, a.Front.Carried
	t.behind = a.Back.Held(now)
	if t.windows == nil {
		t.windows = l.windows.latest.Load()
	}
	if t.Until > now {
		return l.refusing.intern(t)
	}
	if s.LowWater > 0 {
		t.lowWater = s.LowWater
	}
	return l.granting.intern(t)
}

// charge returns what the credits are charged to.
func (t *leaseInfo) charge() account.Charge {
	c := account.Charge{At: t.at, ByTime: t.byTime}
	if t.windows != nil {
		c.Windows = *t.windows
	}
	return c
}

// answer returns the answer after which remaining units remained.
func (t *leaseInfo) answer(remaining int64) account.Answer {
	a := account.Answer{Limit: t.limit, Remaining: remaining, Resets: t.resets, Ends: t.ends, Refusal: t.Refusal}
	if t.open != nil {
		a.Windows = *t.open
	}
	return a
}

// interned saves copies of equal values: a run of them is one object.
type interned[T comparable] struct {
	latest atomic.Pointer[T]
}

// intern returns a pointer to a value equal to v, which must not be changed.
func (s *interned[T]) intern(v T) *T {
	if latest := s.latest.Load(); latest != nil && *latest == v {
		return latest
	}
	kept := v // so that only what is kept takes memory
	s.latest.Store(&kept)
	return &kept
}

// An internedInfo is interned, but its values need not be equal in every respect.
type internedInfo struct{ interned[leaseInfo] }

// intern returns information as good as t. Those of the same windows that were received
// a little earlier end what counts a little earlier, and are right, too.
func (s *internedInfo) intern(t leaseInfo) *leaseInfo {
	last := s.latest.Load()
	if last != nil && last.open == t.open && t.open != nil && !t.byTime &&
		t.resets >= last.resets && t.resets-last.resets <= jitter {
		if t.Until == t.resets {
			t.Until = last.resets
		}
		t.resets, t.ends = last.resets, last.ends
	}
	return s.interned.intern(t)
}

// openWindows returns a holding without credits of the windows that are open at
// the instant now, as well as the store's clock is known. They have the same lengths
// as the last ones.
func (l *Limiter) openWindows(cfg *settings, last limiter.Windows, now int64) account.Grant {
	at := cfg.breaker.storeClock().Midpoint(now)
	var w limiter.Windows
	ends := limiter.MaxWindow
	for _, v := range last.Slice() {
		open := v.WindowAt(at)
		w.Open[w.N] = open
		w.N++
		ends = min(ends, open.End().Sub(at))
	}
	// A window that is about to end is good for a moment, so that the estimate is not
	// made again for every request.
	deadline := now + max(account.Nanos(ends), int64(time.Millisecond))
	return account.Grant{Deadline: deadline, Charge: account.Charge{Windows: w}}
}

package limiter

import "fmt"

// FixedWindow grants at most Limit units in each window of each of its rates;
// every rate has to agree. Because windows are aligned and end at once, a caller
// sees up to twice the limit in an interval that straddles a boundary.
//
// Rates are those of the policy's generation Generation, valid by Validate.
type FixedWindow struct {
	Rates      []Rate
	Generation int64 // 0 to MaxGeneration
}

// Validate reports what is wrong with the rates or the generation.
func (p FixedWindow) Validate() error {
	if p.Generation < 0 || p.Generation > MaxGeneration {
		return fmt.Errorf("generation is %d, outside 0 to %d", p.Generation, MaxGeneration)
	}
	return ValidateRates(p.Rates)
}

// FixedWindowState is what FixedWindow remembers of one key. The zero value is
// the state of a key never seen: there is no separate first request.
type FixedWindowState struct {
	Generation int64 // newest generation that asked; older ones are refused
	Windows
}

// Step applies c to s at the instant now. It panics on an Op it does not know.
//
//	state of the key                        Take                       Return
//	generation newer than the parameters'   0, StaleGeneration         0, StaleGeneration
//	an instant after now was served         0, ClockBehind             0, ClockBehind
//	Min above a limit                       0, TooLarge                —
//	an open window began outside Memory     0, Amnesia                 0, Forfeited
//	fewer than Min left in some window      0, Exhausted               —
//	otherwise                               min(Want, left), Granted   Want, Granted; 0, Forfeited
//	                                                                   when windows differ
//
// A new limit on the same window length takes effect at once and keeps the
// count. A window length that the parameters no longer name stays in force, with
// its old limit, until its open window ends; only then do new lengths begin. An
// edit therefore never opens a second budget beside the first.
func (p FixedWindow) Step(s FixedWindowState, now Instant, c Command) (FixedWindowState, Result) {
	if p.Generation < s.Generation {
		return s, Result{Reason: StaleGeneration, Windows: s.Windows, Now: now}
	}
	if served := s.served(c.Memory); now < served {
		return s, Result{Reason: ClockBehind, Windows: s.Windows, Now: now, RetryAfter: served.Sub(now)}
	}
	s = FixedWindowState{Generation: p.Generation, Windows: p.roll(s.Windows, now)}
	switch c.Op {
	case Take:
		return p.take(s, now, c)
	case Return:
		return p.giveBack(s, now, c)
	default:
		panic("limiter: unknown op")
	}
}

// served returns the newest instant known to have been served: no clock that is
// right shows less.
func (s FixedWindowState) served(m Memory) Instant {
	newest := m.Latest
	for _, w := range s.Slice() {
		newest = max(newest, w.Start())
	}
	return newest
}

// roll returns the windows in force at now: windows that ended start anew or are
// dropped, and the parameters' rates are taken over as the doc of Step says.
func (p FixedWindow) roll(old Windows, now Instant) Windows {
	var next Windows
	for _, r := range p.Rates {
		if w := old.find(r.Window); w != nil {
			v := OpenWindow{Rate: r, Index: r.index(now)}
			if w.Index == v.Index {
				v.Granted = w.Granted
			}
			next.add(v)
		}
	}
	leftover := false
	for _, w := range old.Slice() {
		if w.index(now) == w.Index && next.find(w.Window) == nil {
			next.add(w)
			leftover = true
		}
	}
	if leftover {
		return next
	}
	// next holds only windows of p, so starting over in the order of p keeps all.
	kept := next
	next = Windows{}
	for _, r := range p.Rates {
		if w := kept.find(r.Window); w != nil {
			next.add(*w)
		} else {
			next.add(OpenWindow{Rate: r, Index: r.index(now)})
		}
	}
	return next
}

func (p FixedWindow) take(s FixedWindowState, now Instant, c Command) (FixedWindowState, Result) {
	res := Result{Now: now, Windows: s.Windows, ExpiresIn: MaxWindow, Remaining: MaxLimit}
	var forgotten, full Micros // until the last window with that trouble ends
	for _, w := range s.Slice() {
		left, ends := max(0, w.Limit-w.Granted), w.End().Sub(now)
		res.Remaining = min(res.Remaining, left)
		res.ExpiresIn = min(res.ExpiresIn, ends)
		if left < c.Min {
			full = max(full, ends)
		}
		if !c.Memory.covers(w.Start()) {
			forgotten = max(forgotten, ends)
		}
	}
	if forgotten > 0 {
		res.Remaining = 0
	}
	switch {
	case p.tooLarge(c.Min):
		res.Reason = TooLarge
	case forgotten > 0:
		res.Reason, res.RetryAfter = Amnesia, max(forgotten, full)
	case full > 0:
		res.Reason, res.RetryAfter = Exhausted, full
	default:
		res.Reason, res.Granted = Granted, min(c.Want, res.Remaining)
		s.charge(res.Granted)
		res.Windows, res.Remaining = s.Windows, res.Remaining-res.Granted
	}
	return s, res
}

func (p FixedWindow) tooLarge(amount int64) bool {
	for _, r := range p.Rates {
		if amount > r.Limit {
			return true
		}
	}
	return false
}

func (p FixedWindow) giveBack(s FixedWindowState, now Instant, c Command) (FixedWindowState, Result) {
	res := Result{Now: now, Windows: s.Windows, Reason: Forfeited}
	if !s.SameWindows(c.Windows) {
		return s, res
	}
	for _, w := range s.Slice() {
		if c.Want > w.Granted || !c.Memory.covers(w.Start()) {
			return s, res
		}
	}
	s.charge(-c.Want)
	res.Granted, res.Windows, res.Reason = c.Want, s.Windows, Granted
	return s, res
}

// charge counts amount in every open window.
func (s *FixedWindowState) charge(amount int64) {
	for i := range s.Slice() {
		s.Open[i].Granted += amount
	}
}

// KeepFor returns how long after now a store must keep s for Step to stay exact:
// until its longest window has ended twice over.
func (s FixedWindowState) KeepFor(now Instant) Micros {
	var keep Micros
	for _, w := range s.Slice() {
		keep = max(keep, w.End().Sub(now)+w.Window)
	}
	return keep
}

package limiter_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An auditor holds what was granted against what the parameters promise. It knows
// answers, never states: which contract is in force is what the answers say, and
// every unit is taken to be spent at the worst instant of its lifetime.
type auditor struct {
	eras    []era
	grants  []spendable
	windows []spent
}

// An era is the time for which parameters are in force.
type era struct {
	params limiter.Params
	from   limiter.Instant // true time
}

// A spendable is a grant that is coupled by time.
type spendable struct {
	from, until limiter.Instant // true time of spending
	amount      int64
	era         int
	forgotten   bool // the store cannot know of it
}

// A spent is a window that was served.
type spent struct {
	limiter.Rate
	index, amount int64
	forgotten     bool
}

// era returns the position of the parameters' era, which begins at now when there is
// none.
func (a *auditor) era(p limiter.Params, now limiter.Instant) int {
	if last := len(a.eras) - 1; last >= 0 && a.eras[last].params.Generation == p.Generation && a.eras[last].params.Since == p.Since {
		return last
	}
	a.eras = append(a.eras, era{params: p, from: now})
	return len(a.eras) - 1
}

// inForce reports whether the answer is by the contract of p alone.
func inForce(p limiter.Params, res limiter.Result) bool {
	return res.Algorithm == p.Algorithm &&
		slices.EqualFunc(p.Rates, res.Windows.Slice(), func(r limiter.Rate, w limiter.OpenWindow) bool { return w.Rate == r })
}

// note audits the answer to a take at the true instant now.
func (a *auditor) note(p limiter.Params, now limiter.Instant, res limiter.Result) error {
	if res.Reason == limiter.StaleGeneration || res.Reason == limiter.ClockBehind {
		return nil
	}
	if inForce(p, res) {
		a.era(p, now)
	}
	if res.Algorithm.WindowCoupled() {
		return a.noteWindows(p, res)
	}
	if res.Granted == 0 {
		return nil
	}
	if !inForce(p, res) {
		return fmt.Errorf("%d granted while what an edit left outstanding is waited for", res.Granted)
	}
	i := a.era(p, now)
	g := spendable{from: now, until: now.Add(res.ExpiresIn), amount: res.Granted, era: i}
	if p.Algorithm == limiter.LeakyBucket {
		g.from = now.Add(res.Delay)
		g.until = g.from
	}
	a.grants = append(a.grants, g)
	return a.audit(a.eras[i], i, g)
}

// noteWindows adds a grant to all windows that bind at its instant: those that the
// parameters name, under their limit, and those of before that are still open.
func (a *auditor) noteWindows(p limiter.Params, res limiter.Result) error {
	for _, open := range res.Windows.Slice() {
		if !slices.ContainsFunc(a.windows, func(s spent) bool { return s.is(open) }) {
			a.windows = append(a.windows, spent{Rate: open.Rate, index: open.Index})
		}
	}
	either, fits := p.Any && inForce(p, res), false
	for i := range a.windows {
		w := &a.windows[i]
		named := slices.IndexFunc(p.Rates, func(r limiter.Rate) bool {
			return p.Algorithm.WindowCoupled() && sameWindows(r, w.Rate)
		})
		served := slices.ContainsFunc(res.Windows.Slice(), w.is)
		if w.index != w.WindowAt(res.Now).Index || w.forgotten && !served {
			continue
		}
		if named >= 0 {
			w.Limit = p.Rates[named].Limit
		}
		w.amount += res.Granted
		fits = fits || named >= 0 && w.amount <= w.Limit
		if res.Granted > 0 && !either && w.amount > w.Limit {
			return fmt.Errorf("%d granted in the window %+v", w.amount, *w)
		}
	}
	if res.Granted > 0 && either && !fits {
		return fmt.Errorf("no rate had room for a grant of %d", res.Granted)
	}
	return nil
}

func (s spent) is(w limiter.OpenWindow) bool {
	return sameWindows(s.Rate, w.Rate) && s.index == w.Index
}

func sameWindows(a, b limiter.Rate) bool {
	return a.Window == b.Window && a.Offset == b.Offset && a.Monthly == b.Monthly
}

// audit checks every interval that the newest grant can be spent in, for every rate
// or, when one is enough, for one of them.
func (a *auditor) audit(e era, i int, newest spendable) error {
	var broken []error
	for _, r := range e.params.Rates {
		if err := a.auditRate(e, r, i, newest); err != nil {
			broken = append(broken, err)
		}
	}
	if e.params.Any && len(broken) < len(e.params.Rates) {
		return nil
	}
	return errors.Join(broken...)
}

// auditRate checks the worst intervals: those that end where the newest grant can
// first be spent, and begin where an earlier one can last be.
func (a *auditor) auditRate(e era, r limiter.Rate, i int, newest spendable) error {
	begins := []limiter.Instant{max(e.from, newest.from)}
	for _, g := range a.grants {
		if t := max(e.from, g.until); t < newest.from {
			begins = append(begins, t)
		}
	}
	if e.from < newest.from {
		begins = append(begins, e.from)
	}
	// When one rate is enough, a bucket may have stood above its brim. A store that
	// forgot cannot know how far, so it promises only about what it remembers.
	bucket := e.params.Algorithm == limiter.TokenBucket || e.params.Algorithm == limiter.GCRA
	vouched := !e.params.Any || !bucket
	for _, begin := range begins {
		var sum, largest int64
		var held []spendable
		for _, g := range a.grants {
			if g.until >= begin && g.from <= newest.from && (!g.forgotten || g.era == i && vouched) {
				sum, largest, held = sum+g.amount, max(largest, g.amount), append(held, g)
			}
		}
		if length := newest.from.Sub(begin); sum*int64(r.Window) > e.bound(r, largest, length) {
			return fmt.Errorf("%d can be spent within %d, from %d on, under %+v: %+v", sum, length, begin, e.params, held)
		}
	}
	return nil
}

// bound returns what a rate allows in a closed interval, times its window. What
// leaves a leaky bucket leaves a grant at a time, no sooner than its last unit may.
func (e era) bound(r limiter.Rate, largest int64, length limiter.Micros) int64 {
	switch e.params.Algorithm {
	case limiter.SlidingWindow, limiter.SlidingLog:
		if length >= r.Window {
			return 1 << 40 // nothing is promised beyond a window
		}
		return r.Limit * int64(r.Window)
	case limiter.LeakyBucket: // delays are rounded up to a microsecond
		return largest*int64(r.Window) + r.Limit*int64(length+1)
	default:
		return most(r)*int64(r.Window) + r.Limit*int64(length)
	}
}

// giveBack takes units of a grant off again: they were never spent.
func (a *auditor) giveBack(g lease, now limiter.Instant, amount int64) {
	if g.spendable >= 0 {
		a.grants[g.spendable].amount -= amount
		return
	}
	for i := range a.windows {
		if w := &a.windows[i]; w.index == w.WindowAt(now).Index && !w.forgotten {
			w.amount -= amount
		}
	}
}

// forget notes that the store lost its memory.
func (a *auditor) forget() {
	for i := range a.grants {
		a.grants[i].forgotten = true
	}
	for i := range a.windows {
		a.windows[i].forgotten = true
	}
}

// spendAlone notes that holders that were cut off spent all they may, until the true
// instant to. Earlier spending is not held against what follows.
func (a *auditor) spendAlone(p limiter.Params, to limiter.Instant) {
	i := a.era(p, to)
	a.eras[i].from = to
	least := limiter.MaxLimit
	for _, r := range p.Rates {
		least = min(least, most(r))
	}
	a.grants = append(a.grants, spendable{from: to, until: to, amount: least, era: i, forgotten: true})
}

// most returns the most units of a rate at once.
func most(r limiter.Rate) int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	return r.Limit
}

package limiter_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A world is one key, everything that can happen to the store around it, and an
// auditor that counts what was granted without looking at the key's state.
type world struct {
	now    limiter.Instant
	params limiter.Params
	memory limiter.Memory
	state  limiter.State

	budgets []budget // the auditor's
	grants  []grant  // outstanding, at most maxGrants: what holders may still return
}

const maxGrants = 2

// A budget is one window that limits what may be granted while it is open.
type budget struct {
	length  limiter.Micros
	index   int64
	limit   int64 // the highest that was in force
	granted int64 // returns taken off

	// forgotten says that the store cannot know of the budget. It binds only when
	// the store claims to serve that window.
	forgotten bool
}

func (b budget) open(now limiter.Instant) bool { return int64(now)/int64(b.length) == b.index }

func (b budget) start() limiter.Instant { return limiter.Instant(b.index * int64(b.length)) }

// A grant is what one take got.
type grant struct {
	amount  int64
	windows limiter.Windows
	at      limiter.Instant
}

func (w *world) clone() *world {
	c := *w
	c.budgets, c.grants = slices.Clone(w.budgets), slices.Clone(w.grants)
	c.memory.Gaps = slices.Clone(w.memory.Gaps)
	return &c
}

// step runs one command and reports which rule the answer breaks.
func (w *world) step(p limiter.Params, c limiter.Command) (limiter.Result, error) {
	c.Memory = w.memory
	rates := slices.Clone(p.Rates)
	next, res := p.Step(w.state, w.now, c)
	if !slices.Equal(rates, p.Rates) {
		return res, errors.New("Step wrote to its parameters")
	}
	if err := w.checkState(next, res, c); err != nil {
		return res, err
	}
	if layout(next, w.now) != layout(w.state, w.now) {
		w.memory.Latest = max(w.memory.Latest, w.now) // as stores keep it
	}
	w.state = next
	if res.Reason == limiter.StaleGeneration || res.Reason == limiter.ClockBehind {
		return res, nil
	}
	w.note(p)
	return res, nil
}

// take asks for units and audits what was granted.
func (w *world) take(p limiter.Params, low, high int64) (limiter.Result, error) {
	before := *w
	c := limiter.Command{Min: low, Want: high}
	res, err := w.step(p, c)
	if err != nil {
		return res, err
	}
	if res.Granted != 0 && (res.Granted < low || res.Granted > high) {
		return res, fmt.Errorf("granted %d of %d to %d", res.Granted, low, high)
	}
	if (res.Granted > 0) != (res.Reason == limiter.Granted) {
		return res, fmt.Errorf("granted %d with reason %v", res.Granted, res.Reason)
	}
	if res.Granted > 0 {
		w.grants = append(w.grants, grant{res.Granted, res.Windows, w.now})
		w.grants = w.grants[max(0, len(w.grants)-maxGrants):]
	}
	return res, errors.Join(w.audit(p, res), before.checkRetry(p, c, res))
}

// giveBack returns the whole of an outstanding grant.
func (w *world) giveBack(p limiter.Params, i int) error {
	g := w.grants[i]
	w.grants = slices.Delete(slices.Clone(w.grants), i, i+1)
	res, err := w.step(p, limiter.Command{Op: limiter.Return, Want: g.amount, Windows: g.windows})
	if err != nil || res.Granted == 0 {
		return err
	}
	if res.Granted != g.amount {
		return fmt.Errorf("a return of %d took back %d", g.amount, res.Granted)
	}
	for i := range w.budgets {
		b := &w.budgets[i]
		if b.forgotten || !b.open(w.now) {
			continue
		}
		if b.granted -= g.amount; b.granted < 0 || !b.open(g.at) {
			return fmt.Errorf("the grant %+v came back into the window %+v", g, *b)
		}
	}
	return nil
}

// open returns the windows of the key.
func (w *world) open() []limiter.OpenWindow { return openOf(w.state, w.now) }

func openOf(s limiter.State, now limiter.Instant) []limiter.OpenWindow {
	open := s.Windows(now)
	return open.Slice()
}

// note has the auditor note the budgets that p puts into force: lengths that p
// does not name run to their end first. A window that the store claims to serve
// is a budget in any case.
func (w *world) note(p limiter.Params) {
	leftover := slices.ContainsFunc(w.budgets, func(b budget) bool {
		return b.open(w.now) && w.binds(b) && !names(p, b.length)
	})
	for _, r := range p.Rates {
		if i := w.find(r.Window, int64(w.now)/int64(r.Window)); i >= 0 {
			w.budgets[i].limit = max(w.budgets[i].limit, r.Limit)
		} else if !leftover {
			w.budgets = append(w.budgets, budget{length: r.Window, index: int64(w.now) / int64(r.Window), limit: r.Limit})
		}
	}
	for _, v := range w.open() {
		if w.find(v.Window, v.Index) < 0 {
			w.budgets = append(w.budgets, budget{length: v.Window, index: v.Index, limit: v.Limit})
		}
	}
}

// audit charges a result to every open budget, whatever the state says of it.
func (w *world) audit(p limiter.Params, res limiter.Result) error {
	if res.Granted == 0 {
		return nil
	}
	for i := range w.budgets {
		b := &w.budgets[i]
		if !b.open(w.now) || !w.binds(*b) {
			continue
		}
		if b.granted += res.Granted; b.granted > b.limit {
			return fmt.Errorf("%d granted in the window %+v", b.granted, *b)
		}
		for _, r := range p.Rates {
			if r.Window == b.length && b.granted > r.Limit {
				return fmt.Errorf("under a limit of %d the window %+v grew", r.Limit, *b)
			}
		}
	}
	return nil
}

// binds reports whether the store has to honour b.
func (w *world) binds(b budget) bool {
	return !b.forgotten || slices.ContainsFunc(w.open(), func(v limiter.OpenWindow) bool {
		return v.Window == b.length && v.Index == b.index
	})
}

// find returns the position of a budget, -1 when the auditor knows none.
func (w *world) find(length limiter.Micros, index int64) int {
	return slices.IndexFunc(w.budgets, func(b budget) bool { return b.length == length && b.index == index })
}

func names(p limiter.Params, length limiter.Micros) bool {
	return slices.ContainsFunc(p.Rates, func(r limiter.Rate) bool { return r.Window == length })
}

// checkState compares the state after a command with the one before.
func (w *world) checkState(next limiter.State, res limiter.Result, c limiter.Command) error {
	for _, v := range openOf(next, w.now) {
		if v.Granted < 0 {
			return fmt.Errorf("granted is %d", v.Granted)
		}
		for _, u := range w.open() {
			same := u.Window == v.Window && u.Index == v.Index
			if same && res.Granted == 0 && u.Granted != v.Granted {
				return fmt.Errorf("a refused command moved granted from %d to %d", u.Granted, v.Granted)
			}
			if u.Window == v.Window && v.Index < u.Index {
				return fmt.Errorf("window %d came after window %d", v.Index, u.Index)
			}
		}
	}
	if res.Remaining < 0 || res.Now != w.now || res.Windows != next.Windows(w.now) {
		return fmt.Errorf("the result %+v does not describe the state %+v", res, next)
	}
	if c.Op == limiter.Take && res.Granted > 0 {
		for _, v := range openOf(next, w.now) {
			if res.ExpiresIn <= 0 || w.now.Add(res.ExpiresIn) > v.End() {
				return fmt.Errorf("a grant expires in %d, the window %+v at %d", res.ExpiresIn, v, v.End())
			}
		}
	}
	return nil
}

// checkRetry verifies RetryAfter on the world before the refused take: the same
// command is granted then and not a microsecond earlier.
func (w *world) checkRetry(p limiter.Params, c limiter.Command, res limiter.Result) error {
	never := res.Reason == limiter.TooLarge || res.Reason == limiter.StaleGeneration
	if res.Granted > 0 || never {
		if res.RetryAfter != 0 {
			return fmt.Errorf("retry after %d with %v", res.RetryAfter, res.Reason)
		}
		return nil
	}
	at := func(now limiter.Instant) limiter.Result {
		c.Memory = w.memory
		_, r := p.Step(w.state, now, c)
		return r
	}
	if r := at(w.now.Add(res.RetryAfter - 1)); r.Granted > 0 {
		return fmt.Errorf("%v with retry after %d, yet granted before", res.Reason, res.RetryAfter)
	}
	r := at(w.now.Add(res.RetryAfter))
	switch {
	case r.Reason == limiter.Granted:
	case res.Reason == limiter.ClockBehind && r.Reason != limiter.ClockBehind:
	case r.Reason == limiter.Amnesia && (w.ahead() || !sameLengths(res.Windows, r.Windows)):
		// windows outside the memory open only then
	default:
		return fmt.Errorf("%v with retry after %d, then %v", res.Reason, res.RetryAfter, r.Reason)
	}
	return nil
}

// ahead reports whether the memory knows instants that the clock, which stepped
// back, has still to reach.
func (w *world) ahead() bool {
	return w.memory.Since > w.now+1 ||
		slices.ContainsFunc(w.memory.Gaps, func(g limiter.Gap) bool { return g.To > w.now+1 })
}

func sameLengths(a, b limiter.Windows) bool {
	return slices.EqualFunc(a.Slice(), b.Slice(), func(x, y limiter.OpenWindow) bool { return x.Window == y.Window })
}

// forget loses the state, as a restart does.
func (w *world) forget() {
	w.state = limiter.State{}
	w.memory = limiter.Memory{Since: max(w.now, w.memory.Latest) + 1, Latest: w.memory.Latest}
	for i := range w.budgets {
		w.budgets[i].forgotten = true
	}
}

// handOver lets d pass unserved and keeps the state, while holders that are cut off
// spend every window that begins meanwhile.
func (w *world) handOver(d limiter.Micros) {
	gap := limiter.Gap{From: w.now, To: w.now.Add(d) + 1}
	w.memory.Gaps = append(w.memory.Gaps, gap)
	w.now = w.now.Add(d)
	w.memory.Latest = max(w.memory.Latest, w.now) // a store that is handed over has a clock that never steps back
	for _, r := range w.params.Rates {
		b := budget{length: r.Window, index: int64(w.now) / int64(r.Window), limit: r.Limit, granted: r.Limit, forgotten: true}
		if b.start() >= gap.From && w.find(b.length, b.index) < 0 {
			w.budgets = append(w.budgets, b)
		}
	}
}

// expire drops a state whose time is over, as stores do.
func (w *world) expire() {
	if w.state.KeepFor(w.now) <= 0 {
		w.state = limiter.State{}
		w.memory.Latest = max(w.memory.Latest, w.now)
	}
}

// layout is the generation and the open windows of a state, without their counts.
func layout(s limiter.State, now limiter.Instant) [2]any {
	w := s.Windows(now)
	for i := range w.Slice() {
		w.Open[i].Granted = 0
	}
	return [2]any{s.Generation, w}
}

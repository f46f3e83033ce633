package explore_test

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// decide has the store decide a command, by its clock.
func (f *fleet) decide(w *world, c call) call {
	s, now, p := &w.stores[c.store], f.now(w), f.policies[c.policy]
	if c.store == 1 {
		p.Since = w.since
	}
	c.command.Memory, c.begun = s.memory, s.memory.Since
	if f.floors {
		c.command.Memory.Since = f.rules.forgot(c.known, s.memory.Since)
	}
	next, res := f.rules.step(p, s.state, now, c.command)
	s.state, c.reply = next, &res
	if res.Reason == limiter.StaleGeneration || res.Reason == limiter.ClockBehind || c.store == 0 && w.move == moved {
		return c // nobody is bound by it
	}
	w.audit = w.audit.asked(p, f.inHand(w))
	if res.Granted > 0 {
		units := res.Granted
		if c.command.Op == limiter.Return {
			units = -units
		}
		w.audit = w.audit.granted(units, res)
		w.own(c.holder).got += units
	}
	f.checkShares(w, p)
	return c
}

// checkShares has the store refuse nobody what it was promised.
func (f *fleet) checkShares(w *world, p limiter.Params) {
	s := w.stores[0]
	for n, t := range f.tenants {
		got := int64(0)
		if h := w.holders[n]; h.window == p.Rates[0].WindowAt(f.now(w)).Index {
			got = h.got
		}
		ask := limiter.Command{Op: limiter.Peek, Min: 1, Want: 1, Tenant: t.name, Memory: s.memory}
		if _, res := f.rules.step(p, s.state, f.now(w), ask); got < t.promised && res.Granted == 0 {
			w.broken = fmt.Errorf("%s was granted %d of %d, and is refused", t.name, got, t.promised)
		}
	}
}

// deliver lets the messages of a holder arrive or get lost.
func (f *fleet) deliver(w world, n int, emit emitter) {
	h := w.holders[n]
	if h.call != nil {
		f.deliverCall(w, n, *h.call, emit)
	}
	if h.stray != nil {
		v := w
		v.own(n).stray = nil
		decided := f.decide(&v, *h.stray)
		emit(action{"does not wait for a grant of", n, decided.reply.Granted}, v)
	}
	if h.back != nil {
		v := w
		v.own(n).back = nil
		if f.lost {
			emit(action{"loses its return", n, 0}, v)
		}
		decided := f.decide(&v, *h.back)
		emit(action{"has returned", n, decided.reply.Granted}, v)
	}
}

func (f *fleet) deliverCall(w world, n int, c call, emit emitter) {
	v := w
	if c.reply == nil {
		decided := f.decide(&v, c)
		v.own(n).call = &decided
		emit(action{"is granted", n, decided.reply.Granted}, v)
	} else {
		f.receive(&v, n, c)
		emit(action{"receives", n, c.reply.Granted}, v)
	}
	if !f.lost {
		return
	}
	v = w
	v.own(n).call = nil
	emit(action{"loses its call", n, 0}, v)
	if c.reply == nil && w.holders[n].stray == nil {
		v.own(n).stray = &c
		emit(action{"gives its call up", n, 0}, v)
	}
}

// hear lets a holder learn of the next policy, or of the next phase of a move.
func (f *fleet) hear(w world, n int, emit emitter) {
	if h := w.holders[n]; h.policy+1 < len(f.policies) {
		v := w
		v.own(n).policy++
		emit(action{"hears of edit", n, int64(v.holders[n].policy)}, v)
	}
	if h := w.holders[n]; h.move < w.move {
		v := w
		h := v.own(n)
		h.move++
		what := "hears of the new store"
		if h.move == draining {
			given := h.hand.Front.Returnable(f.mono(&v, n))
			h.hand = account.Balance{}
			f.sendBack(&v, n, given)
			what = "drains"
		}
		emit(action{what, n, 0}, v)
	}
}

// surround lets time pass and the store have its misfortunes.
func (f *fleet) surround(w world, emit emitter) {
	v := w
	v.tick++
	v.audit = v.audit.passed(f.now(&v))
	f.look(&v)
	emit(action{"a tick passes", nobody, 0}, v)
	if w.unlucky < f.restarts {
		v := w
		v.unlucky++
		v.stores[0] = memory{memory: limiter.Memory{Since: f.now(&w) + 1}}
		emit(action{"the store forgets", nobody, 0}, v)
	}
	if w.behind >= 0 && w.behind < f.stepBack {
		v := w
		v.behind++
		emit(action{"the store's clock steps back", nobody, 0}, v)
	}
	if w.behind <= 0 && w.behind > -f.jumps {
		v := w
		v.behind--
		emit(action{"the store's clock runs ahead", nobody, 0}, v)
	}
	if w.behind < 0 || w.behind > 0 && f.right {
		v := w
		v.behind = 0
		emit(action{"the store's clock is set right", nobody, 0}, v)
	}
	if s := w.stores[0]; f.expires && s.state.N > 0 && f.rules.keepFor(s.state, f.now(&w)) <= 0 {
		v := w
		v.stores[0].state = limiter.State{}
		if !f.rules.unnoted {
			v.stores[0].memory.Latest = f.now(&w)
		}
		emit(action{"the store drops the key", nobody, 0}, v)
	}
}

// look has all holders look at the store's clock, as they do now and then: every other
// tick, in the midst of a window, so they do not see all that it shows.
func (f *fleet) look(w *world) {
	if !f.floors || w.tick%2 == 0 {
		return
	}
	for n := range w.holders {
		h, at := w.own(n), f.mono(w, n)
		h.clock = f.rules.looked(h.clock, f.now(w), at)
		h.known.Behind = h.clock.Behind()
		h.known = h.known.Answered(w.stores[0].memory.Since, f.now(w))
	}
}

// takeOver moves the fleet to the second store, phase by phase. A phase begins when
// every holder has heard of the one before.
func (f *fleet) takeOver(w world, emit emitter) {
	if !f.moves || w.move == moved {
		return
	}
	for _, h := range w.holders {
		if h.move != w.move && !f.rules.hasty {
			return
		}
	}
	w.move++
	what := "the fleet is drained"
	if w.move == moved {
		w.since = f.now(&w) + 1 // later than what anybody has done before
		what = "the fleet moves to another store"
	}
	emit(action{what, nobody, 0}, w)
}

// clocksStep reports whether a window may be open more than once.
func (f *fleet) clocksStep() bool { return f.stepBack+f.jumps > 0 }

// check returns what is wrong with a world.
func (f *fleet) check(w world) error {
	if w.broken != nil {
		return w.broken
	}
	for _, s := range w.stores {
		if err := s.state.Validate(); s.state.N > 0 && err != nil {
			return fmt.Errorf("the state is not valid: %w", err)
		}
	}
	return f.checkCommitted(&w)
}

// checkCommitted has what was admitted, what is in hand and what the store would
// still grant together be no more than the promise. From this the promise follows:
// what happens moves units from one to the next. (In terms of spec/, it is Conserved
// and Covered.)
func (f *fleet) checkCommitted(w *world) error {
	s := w.stores[0]
	if f.loose || s.state.N == 0 || len(f.policies) > 1 || f.moves || f.tenants != nil || f.clocksStep() {
		return nil
	}
	ask := limiter.Command{Op: limiter.Peek, Min: 1, Want: 1, Memory: s.memory}
	_, res := f.rules.step(f.policies[0], s.state, f.now(w), ask)
	committed := f.inHand(w) + res.Remaining
	if over := w.audit.spent(committed, account.Charge{}).excess(); over > 0 {
		return fmt.Errorf("%d units in hand or in the store are more than the bound leaves", over)
	}
	return nil
}

package explore_test

import (
	"errors"
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// request lets a request arrive at a holder. It is admitted from the credits in
// hand, or more are asked for.
func (f *fleet) request(w world, n int, cost int64, emit emitter) {
	f.carryOver(&w, n)
	if f.serve(&w, n, cost) {
		emit(action{"serves", n, cost}, w)
		return
	}
	h := w.holders[n]
	if h.call != nil || h.move == draining {
		return // it waits for the call, or is refused
	}
	need := h.hand.Shortfall(f.mono(&w, n), cost)
	c := f.ask(&w, n, need)
	if f.late {
		w.own(n).call = &c
		emit(action{"asks for", n, c.command.Want}, w)
		return
	}
	f.receive(&w, n, f.decide(&w, c))
	f.serve(&w, n, cost)
	emit(action{"leases for", n, cost}, w)
}

// carryOver takes credits over into the window that is open.
func (f *fleet) carryOver(w *world, n int) {
	if !f.carry {
		return
	}
	now := f.mono(w, n)
	rate := f.policies[0].Rates[0]
	open := rate.WindowAt(f.now(w))
	into := account.GrantOf(now, limiter.Result{
		ExpiresIn: open.End().Sub(f.now(w)),
		Windows:   limiter.Windows{N: 1, Open: [limiter.MaxRates]limiter.OpenWindow{open}},
	})
	w.own(n).hand = f.rules.carry(w.holders[n].hand, now, f.batch-1+f.lowWater, into)
}

// serve spends credits in hand, and reports whether there were enough.
func (f *fleet) serve(w *world, n int, cost int64) bool {
	hand, charge, ok := f.rules.spend(w.holders[n].hand, f.mono(w, n), cost)
	if !ok {
		return false
	}
	h := w.own(n)
	h.hand = hand
	if f.cancels {
		h.last = &admitted{cost, charge}
	}
	w.audit = w.audit.spent(cost, charge)
	if over := w.audit.excess() + f.spare; over > 0 {
		w.broken = fmt.Errorf("%d more than the bound were admitted", over)
	}
	if !f.loose && !f.carry && !f.clocksStep() && !charge.ByTime && !f.charged(w, charge) {
		w.broken = errors.Join(w.broken, errors.New("a request is charged to a window that is not open"))
	}
	return true
}

// charged reports whether all windows of a charge are open.
func (f *fleet) charged(w *world, c account.Charge) bool {
	for _, v := range c.Windows.Slice() {
		if !v.Contains(f.now(w)) {
			return false
		}
	}
	return true
}

// ask returns a new lease, which has to bring need units at least.
func (f *fleet) ask(w *world, n int, need int64) call {
	h := w.own(n)
	c := call{holder: n, policy: h.policy, sent: f.mono(w, n)}
	if h.move == moved {
		c.store = 1
	}
	c.command = limiter.Command{Op: limiter.Take, Min: need, Want: max(need, f.batch)}
	if f.whole {
		c.command.Min = c.command.Want
	}
	if open := f.policies[0].Rates[0].WindowAt(f.now(w)).Index; h.window != open {
		c.command.First, h.window, h.got = f.guided, open, 0
	}
	if f.floors {
		c.command.Floor = f.rules.floor(h.clock, c.sent)
		c.known = h.known
		c.known.Behind = h.clock.Behind()
	}
	if f.tenants != nil {
		c.command.Tenant = f.tenants[n].name
	}
	return c
}

// askAhead asks for more before the credits in hand are spent.
func (f *fleet) askAhead(w world, n int, emit emitter) {
	h := w.holders[n]
	held := h.hand.Front.Held(f.mono(&w, n))
	if f.lowWater == 0 || held > f.lowWater || h.call != nil || h.move == draining {
		return
	}
	c := f.ask(&w, n, 1)
	if f.late {
		w.own(n).call = &c
	} else {
		f.receive(&w, n, f.decide(&w, c))
	}
	emit(action{"asks ahead for", n, c.command.Want}, w)
}

// receive hands the reply of a lease to its holder. A holder that heard of the move ignores
// what the old store granted.
func (f *fleet) receive(w *world, n int, c call) {
	h := w.own(n)
	h.call = nil
	if c.store == 0 && h.move != staying {
		return
	}
	var lost account.Grant
	now := f.mono(w, n)
	if f.floors {
		h.clock = h.clock.Answered(limiter.Command{}, *c.reply, now)
		h.known.Behind = h.clock.Behind()
		h.known = h.known.Answered(c.begun, c.reply.Now)
	}
	h.hand, lost = f.rules.receive(h.hand, now, f.rules.grantOf(c.sent, now, *c.reply), f.carry)
	f.sendBack(w, n, lost.Returnable(now))
}

// cancel takes the last admission back: the request was not let through after all.
func (f *fleet) cancel(w world, n int, emit emitter) {
	last := w.holders[n].last
	if last == nil {
		return
	}
	h := w.own(n)
	h.last = nil
	h.hand, _ = f.rules.refund(h.hand, last.charge, last.cost)
	w.audit = w.audit.spent(-last.cost, last.charge)
	emit(action{"cancels", n, last.cost}, w)
}

// giveBack lets a holder return what is in front, or what is behind it.
func (f *fleet) giveBack(w world, n int, emit emitter) {
	hand, now := w.holders[n].hand, f.mono(&w, n)
	if !f.returns || w.holders[n].back != nil {
		return
	}
	if given := hand.Front.Returnable(now); given.Credits > 0 {
		v := w
		v.own(n).hand = account.Balance{Front: hand.Back}
		f.sendBack(&v, n, given)
		emit(action{"returns", n, given.Credits}, v)
	}
	if given := hand.Back.Returnable(now); given.Credits > 0 {
		v := w
		v.own(n).hand = account.Balance{Front: hand.Front}
		f.sendBack(&v, n, given)
		emit(action{"returns from behind", n, given.Credits}, v)
	}
}

// sendBack puts a return of credits under way, if there is room for one.
func (f *fleet) sendBack(w *world, n int, given account.Grant) {
	h := w.own(n)
	if !f.returns || given.Credits == 0 || h.back != nil {
		return
	}
	c := call{holder: n, policy: h.policy, command: limiter.Command{
		Op: limiter.Return, Want: given.Credits, Windows: given.Windows, At: given.At,
	}}
	if f.tenants != nil {
		c.command.Tenant = f.tenants[n].name
	}
	if h.move == moved {
		c.store = 1
	}
	if f.late {
		h.back = &c
	} else {
		f.decide(w, c)
	}
}

// inHand returns the units that were granted and may still be spent, at most.
func (f *fleet) inHand(w *world) int64 {
	var units int64
	for n, h := range w.holders {
		now := f.mono(w, n)
		units += h.hand.Front.Held(now) + h.hand.Back.Held(now)
		if h.call != nil && h.call.reply != nil {
			units += account.GrantOf(h.call.sent, *h.call.reply).Held(now)
		}
	}
	return units
}

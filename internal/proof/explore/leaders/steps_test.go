package leaders_test

import (
	"fmt"
	"iter"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// An action is what happened.
type action struct {
	verb   string
	actor  string // "" when it is nobody's
	amount int64
}

func (a action) String() string {
	text := a.verb
	if a.actor != "" {
		text = a.actor + " " + a.verb
	}
	if a.amount != 0 {
		text += fmt.Sprint(" ", a.amount)
	}
	return text
}

type emitter func(action, world)

// next yields all that can happen.
func (s *succession) next(w world) iter.Seq2[action, world] {
	return func(yield func(action, world) bool) {
		open := true
		emit := func(a action, v world) { open = open && yield(a, v) }
		for i, p := range w.processes {
			if p.role != gone || p.sent != nil {
				s.process(w, i, emit)
			}
		}
		for n := range w.holders {
			s.serve(w, n, emit)
			for i := range w.processes {
				s.ask(w, n, i, emit)
			}
		}
		if w.tick < s.ticks {
			v := w
			v.tick++
			emit(action{verb: "a tick passes"}, v)
		}
		if s.deleted && !w.deleted && w.lease.version > 0 {
			v := w
			v.deleted, v.lease = true, lease{}
			emit(action{verb: "somebody deletes the Lease"}, v)
		}
	}
}

// process lets a process do what it may.
func (s *succession) process(w world, i int, emit emitter) {
	name, p := fmt.Sprint("node ", i), w.processes[i]
	does := func(verb string, do func(*world)) {
		v := w
		do(&v)
		emit(action{verb: verb, actor: name}, v)
	}
	switch {
	case p.sent == nil && p.role != sealed:
		if v := w; s.try(&v, i) {
			does("tries to lead", func(v *world) { s.try(v, i); s.deliver(v, i) })
			if w.lost < s.lost {
				does("writes in vain", func(v *world) { s.try(v, i); v.own(i).sent = nil; v.lost++ })
				does("is not answered", func(v *world) { s.try(v, i); s.arrive(v, i); v.own(i).sent = nil; v.lost++ })
			}
		} else if p.role != standing && v.processes[i].role == gone {
			emit(action{verb: "sees that it lost the lock", actor: name}, v)
		}
	case p.sent != nil && !p.sent.arrived:
		does("has its write arrive", func(v *world) { s.arrive(v, i) })
		if w.lost < s.lost {
			does("loses its write", func(v *world) { v.own(i).sent = nil; v.lost++ })
		}
	case p.sent != nil:
		does("is answered", func(v *world) { s.answer(v, i) })
		if w.lost < s.lost {
			does("loses the answer", func(v *world) { v.own(i).sent = nil; v.lost++ })
		}
	}
	if p.role == holding && s.late && p.renewal.Holds(w.boot(), span) {
		does("begins a term", func(v *world) { s.begin(v, i) })
	}
	if p.role == leading && s.orderly {
		does("seals", func(v *world) { s.seal(v, i) })
	}
	if p.role == sealed && p.sent == nil {
		does("releases the lock", func(v *world) { s.release(v, i); s.deliver(v, i) })
	}
	if p.role != gone && p.role != standing && w.crashes < s.crashes && s.others(&w, i) {
		does("crashes", func(v *world) { v.own(i).end(); v.crashes++ })
	}
	if w.sets < s.sets && p.role != gone {
		for _, to := range []int64{-s.setBy, 0, s.setBy} {
			if to != p.offset {
				v := w
				v.own(i).offset = to
				v.sets++
				emit(action{"has its clock set to be off by", name, to}, v)
			}
		}
	}
}

// others reports whether another process could lead.
func (s *succession) others(w *world, than int) bool {
	for i, p := range w.processes {
		if i != than && p.role < sealed {
			return true
		}
	}
	return false
}

// end has a process end. Messages that it sent may still arrive.
func (p *process) end() { *p = process{role: gone, sent: p.sent} }

// try has a process look at the Lease and, when it may, take or renew it. It reports
// whether it sent a write.
func (s *succession) try(w *world, i int) bool {
	p := w.own(i)
	if w.lease.version != p.observed {
		p.observed, p.since = w.lease.version, w.tick
	}
	own := w.lease.version > 0 && w.lease.holder == i
	switch {
	case w.lease.version == 0 && p.renewal != nil && !p.renewal.Holds(w.boot(), span) && !s.rules.revives:
		p.end() // the Lease is gone, and somebody else may have led
		return false
	case own && p.renewal != nil && p.renewal.Sent == w.boot():
		return false // it has renewed
	case w.lease.version > 0 && !own:
		p.past = s.rules.past(w.lease.note, hold*tick)
		if p.role != standing {
			p.end() // another one has it
			return false
		}
		if w.lease.note.Held && w.tick-p.since < wait {
			return false
		}
	case w.lease.version == 0 && p.renewal == nil:
		p.past = s.rules.missed(p.past, hold*tick)
	}
	s.send(w, i, true)
	return true
}

// send puts a write of the Lease under way.
func (s *succession) send(w *world, i int, held bool) {
	p := w.own(i)
	if held && p.renewal == nil {
		p.at, p.clock = w.tick, s.rules.start(w.wall(p), p.past.Served)
	}
	note := leadership.Note{Clock: w.now(p), Wall: w.wall(p), Held: held}
	p.sent = &write{
		lease: lease{holder: i, note: s.rules.note(note)}, replaces: w.lease.version,
		renewal: leadership.Renewal{Sent: w.boot(), Clock: w.now(p)},
	}
	if !held {
		p.sent.holder = nobody
	}
}

// deliver has a write arrive and be answered at once, unless it may be late.
func (s *succession) deliver(w *world, i int) {
	if !s.late {
		s.arrive(w, i)
		s.answer(w, i)
	}
}

// arrive has a write arrive. It fails when it replaces another version.
func (s *succession) arrive(w *world, i int) {
	p := w.own(i)
	sent := *p.sent
	sent.arrived = true
	if w.lease.version == sent.replaces && (sent.replaces > 0 || w.lease.version == 0) {
		sent.accepted = true
		w.lease = lease{version: s.version(w) + 1, holder: sent.holder, note: sent.note}
	}
	p.sent = &sent
	for n := range w.processes { // they look often; to do so later only delays them
		if p := &w.processes[n]; sent.accepted && !s.unseen && n != i && p.role == standing {
			p.observed, p.since, p.past = w.lease.version, w.tick, s.rules.past(sent.note, hold*tick)
		}
	}
}

// version returns the newest version that any process knows of.
func (s *succession) version(w *world) int {
	newest := w.lease.version
	for _, p := range w.processes {
		newest = max(newest, p.observed)
		if p.sent != nil {
			newest = max(newest, p.sent.replaces)
		}
	}
	return newest
}

// answer has a process hear what became of its write.
func (s *succession) answer(w *world, i int) {
	p := w.own(i)
	sent := p.sent
	p.sent = nil
	switch {
	case p.role == gone:
	case p.role == sealed:
		p.end()
	case !sent.accepted || !s.rules.byAnswer && !sent.renewal.Holds(w.boot(), span): // or it gave up waiting
	case p.role == standing:
		p.role = holding
		fallthrough
	default:
		if s.rules.byAnswer {
			sent.renewal = leadership.Renewal{Sent: w.boot(), Clock: w.now(p)}
		}
		p.renewal = &sent.renewal
		p.observed, p.since = w.lease.version, w.tick
		if p.role == holding && !s.late {
			s.begin(w, i)
		}
	}
}

// begin begins a term: from what the one before left, or with nothing.
func (s *succession) begin(w *world, i int) {
	p := w.own(i)
	first := w.terms == 0 && p.past.Served <= hold*limiter.Instant(tick)
	w.terms++
	p.role, p.term = leading, w.terms
	if w.left != nil {
		p.raise(w, w.left.stopped)
	}
	now := w.now(p) + 1
	back := now.Add(p.past.Overlap)
	switch {
	case w.left != nil:
		p.memory = memory{w.left.known.After(limiter.Gap{From: w.left.stopped, To: back}, now), w.left.state}
	case first:
		p.memory = memory{}
	default:
		p.memory = memory{known: limiter.Memory{Since: back}}
	}
	p.memory = s.rules.begin(p.memory)
	w.left = nil
}

// raise is that of the store's clock.
func (p *process) raise(w *world, floor limiter.Instant) {
	if behind := floor.Sub(w.now(p)); behind > 0 {
		p.clock = p.clock.Add(behind)
	}
}

// seal ends a term in order.
func (s *succession) seal(w *world, i int) {
	p := w.own(i)
	p.role = sealed
	if p.term == w.terms {
		w.left = &legacy{w.now(p), p.memory}
	}
	p.memory, p.term = memory{}, 0
}

// release gives the lock back: from when it is sent on nothing is served.
func (s *succession) release(w *world, i int) {
	p := w.own(i)
	p.renewal = nil
	if w.lease.version == 0 || w.lease.holder != i {
		p.end()
		p.sent = &write{arrived: true}
		return
	}
	s.send(w, i, false)
}

// serve has a holder spend what it has.
func (s *succession) serve(w world, n int, emit emitter) {
	hand, charge, ok := w.holders[n].hand.Spend(w.mono(), 1)
	if !ok {
		return
	}
	w.holder(n).hand = hand
	w.admitted[charge.Windows.Open[0].Index-s.first()]++
	emit(action{verb: "serves", actor: fmt.Sprint("holder ", n)}, w)
}

// first returns the index of the earliest window that is counted.
func (s *succession) first() int64 {
	return s.params().Rates[0].WindowAt(epoch.Add(-4 * tick)).Index
}

// ask has a holder ask a process for a lease. One that leads by a term before that of the
// holder's leader it does not ask.
func (s *succession) ask(w world, n, i int, emit emitter) {
	p, h := w.processes[i], w.holders[n]
	if p.role != leading || p.term < h.term || h.hand.Front.Held(w.mono()) > 0 {
		return
	}
	granted := s.lease(&w, n, i)
	emit(action{fmt.Sprint("leases from node ", i), fmt.Sprint("holder ", n), granted}, w)
}

// lease returns what the holder got.
func (s *succession) lease(w *world, n, i int) int64 {
	h, p := w.holder(n), w.own(i)
	if p.term > h.term {
		h.term, h.clock = p.term, s.rules.pause(h.clock)
	}
	c := limiter.Command{Op: limiter.Take, Min: 1, Want: s.batch, Floor: s.rules.floor(h.clock, w.mono()), Memory: p.known}
	next, res := s.params().Step(p.state, w.now(p), c)
	p.state = next
	if p.renewal == nil || !s.rules.covers(*p.renewal, w.now(p), w.boot(), span) {
		return 0 // it is granted, and never arrives
	}
	h.clock = h.clock.Answered(limiter.Command{}, res, w.mono())
	h.hand, _ = h.hand.Receive(w.mono(), account.GrantOf(w.mono(), res), false)
	return res.Granted
}

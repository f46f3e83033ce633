package pools_test

import "github.com/weir-dev/weir/pkg/concurrency/pool"

// silent is the amount of an event that has none.
const silent = -1

// work lets requests come and go.
func (f *fleet) work(w world, n int, emit emitter) {
	h := w.holders[n]
	if f.keys > 0 {
		f.workByKey(w, n, emit)
		return
	}
	if h.up && h.inflight < f.held(&w, n) {
		v := w
		v.holders[n].admit()
		emit(event{"admits", n, silent}, v)
	}
	if h.inflight > 0 {
		v := w
		v.holders[n].inflight--
		emit(event{"finishes", n, silent}, v)
	}
}

func (h *holder) admit() {
	h.inflight++
	h.peak, h.since = max(h.peak, h.inflight), max(h.since, h.inflight)
}

// beats lets a holder report its state to the coordinator.
func (f *fleet) beats(w world, n int, emit emitter) {
	h := w.holders[n]
	if h.beat != nil {
		v := w
		v.holders[n].beat = nil
		f.handle(&v, n, *h.beat, func(a answer) { v.holders[n].answer = &a })
		emit(event{"is heard with beat", n, h.beat.command.Seq}, v)
		f.keepStray(v, n, h.beat, "is heard, and may be once more, with beat", emit)
	}
	if !h.up || h.beat != nil || h.answer != nil {
		return // one beat is outstanding
	}
	opinions := f.opinions
	if opinions == nil {
		opinions = []int64{0}
	}
	for _, opinion := range opinions {
		v := w
		b := f.send(&v, n, pool.Beat, opinion)
		if n < f.late {
			v.holders[n].beat = &b
			emit(event{"sends beat", n, b.command.Seq}, v)
			continue
		}
		f.handle(&v, n, b, func(a answer) { f.apply(&v, n, a) })
		emit(event{"beats and has a share of", n, v.holders[n].share.units}, v)
		f.linger(w, n, opinion, emit)
	}
}

// linger lets a leader answer that another took over from.
func (f *fleet) linger(w world, n int, opinion int64, emit emitter) {
	if !f.rules.lingers || w.before == nil {
		return
	}
	newer := w.pool
	w.pool = w.before
	f.handle(&w, n, f.send(&w, n, pool.Beat, opinion), func(a answer) { f.apply(&w, n, a) })
	w.pool, w.before = newer, w.pool
	emit(event{"beats to the leader before and has a share of", n, w.holders[n].share.units}, w)
}

// send returns the next beat of a holder.
func (f *fleet) send(w *world, n int, op pool.Op, opinion int64) beat {
	h := &w.holders[n]
	h.seq++
	c := pool.Command{
		Op: op, Holder: f.name(n, h.boot), Seq: h.seq, Term: h.share.term, Applied: h.share.generation,
		Held: f.held(w, n), InFlight: h.inflight, Peak: max(h.peak, h.inflight), Limit: opinion,
	}
	h.since = h.inflight
	if f.keys > 0 {
		c.InFlight = f.rules.fullest(h.of)
	}
	if op == pool.Leave {
		c.InFlight, c.Peak = 0, 0
	}
	f.rules.altered(&c)
	return beat{command: c, boot: h.boot, policy: h.policy, sent: w.ticks}
}

// apply lets a holder work by an answer, if it counts.
func (f *fleet) apply(w *world, n int, a answer) {
	h := &w.holders[n]
	if !h.up || a.boot != h.boot || !f.rules.counts(h, a.grant) {
		return
	}
	h.answered = a.grant.Seq
	ends := f.rules.since(a.sent, w.ticks) + int64(a.grant.TTL/tick)
	h.share = share{a.grant.Term, a.grant.Generation, f.rules.takes(a.grant, f.held(w, n)), ends}
	h.over = max(h.over, ends-f.margin+f.request)
	h.peak = h.since
}

// answers lets an answer arrive, and a holder give its beat up.
func (f *fleet) answers(w world, n int, emit emitter) {
	h := w.holders[n]
	if h.answer != nil {
		v := w
		v.holders[n].answer = nil
		f.apply(&v, n, *h.answer)
		emit(event{"hears that its share is", n, h.answer.grant.Share}, v)
	}
	if h.beat == nil && h.answer == nil {
		return
	}
	v := w
	v.holders[n].beat, v.holders[n].answer = nil, nil
	emit(event{"gives its beat up", n, silent}, v)
	if h.answer != nil && f.overdue {
		v.holders[n].overdue = h.answer
		emit(event{"gives up, and its answer is on the way,", n, h.answer.grant.Share}, v)
	}
	f.keepStray(v, n, h.beat, "gives up, and it may arrive nevertheless, beat", emit)
}

// keepStray lets a beat stay under way.
func (f *fleet) keepStray(w world, n int, b *beat, verb string, emit emitter) {
	if f.strays && b != nil {
		w.holders[n].stray = b
		emit(event{verb, n, b.command.Seq}, w)
	}
}

// strayed lets arrive what nobody waits for any more. A stray beat may arrive again.
func (f *fleet) strayed(w world, n int, emit emitter) {
	h := w.holders[n]
	if h.stray != nil {
		v := w
		f.handle(&v, n, *h.stray, func(a answer) {
			if f.overdue {
				v.holders[n].overdue = &a
			}
		})
		emit(event{"is heard with stray beat", n, h.stray.command.Seq}, v)
	}
	if h.overdue != nil {
		v := w
		v.holders[n].overdue = nil
		f.apply(&v, n, *h.overdue)
		emit(event{"hears late that its share is", n, h.overdue.grant.Share}, v)
	}
}

// lives lets processes start and end.
func (f *fleet) lives(w world, n int, emit emitter) {
	h := w.holders[n]
	if f.leaves && h.up && (h.inflight == 0 || f.rules.busy) && h.beat == nil {
		v := w
		b := f.send(&v, n, pool.Leave, 0)
		v.holders[n].up, v.holders[n].answer = false, nil
		if n < f.late {
			v.holders[n].beat = &b
		} else {
			f.handle(&v, n, b, func(answer) {})
		}
		emit(event{"leaves", n, silent}, v)
	}
	if w.started == f.starts {
		return
	}
	v := w
	v.started++
	v.holders[n] = holder{
		up: true, boot: h.boot + 1, policy: h.policy, stray: h.stray, overdue: h.overdue,
	}
	if f.strays && h.beat != nil {
		v.holders[n].stray = h.beat
	}
	if h.up {
		emit(event{"dies and starts again", n, silent}, v)
	} else if h.inflight == 0 {
		emit(event{"starts again", n, silent}, v)
	}
}

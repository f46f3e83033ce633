package leaders_test

import (
	"encoding/binary"
	"slices"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
)

// encode appends all in which worlds may differ. All that matters about a version of the
// Lease is whether it is the newest one.
func (s *succession) encode(b []byte, w world) []byte {
	e := encoder{b: b, w: &w}
	e.add(w.tick, e.newest(w.lease.version), int64(w.lease.holder), int64(w.terms), w.sets, int64(w.crashes), int64(w.lost), boolean(w.deleted))
	if w.lease.version > 0 {
		e.note(w.lease.note)
	}
	e.add(w.admitted[:]...)
	e.add(boolean(w.left != nil))
	if w.left != nil {
		e.add(int64(w.left.stopped))
		e.memory(w.left.memory)
	}
	for i := range w.processes {
		e.process(&w.processes[i])
	}
	parts := make([][]byte, len(w.holders)) // holders are alike
	for n := range w.holders {
		parts[n] = e.holder(&w.holders[n])
	}
	slices.SortFunc(parts, slices.Compare)
	for _, p := range parts {
		e.b = append(e.b, p...)
	}
	return e.b
}

type encoder struct {
	b []byte
	w *world
}

func (e *encoder) add(list ...int64) {
	for _, v := range list {
		e.b = binary.AppendVarint(e.b, v)
	}
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// newest is 0 for no version, and says of another whether it is the Lease's.
func (e *encoder) newest(version int) int64 {
	return boolean(version > 0) + boolean(version == e.w.lease.version)
}

func (e *encoder) note(n leadership.Note) { e.add(int64(n.Clock), int64(n.Wall), boolean(n.Held)) }

func (e *encoder) renewal(r *leadership.Renewal) {
	e.add(boolean(r != nil))
	if r != nil {
		e.add(min((e.w.boot()-r.Sent).Microseconds(), hold*int64(tick)), int64(r.Clock))
	}
}

func (e *encoder) memory(m memory) {
	e.add(int64(m.known.Since), int64(len(m.known.Gaps)))
	for _, g := range m.known.Gaps {
		e.add(int64(g.From), int64(g.To))
	}
	e.add(int64(m.state.N))
	for _, v := range m.state.Slice() {
		e.add(v.Index, v.Used)
	}
	e.add(int64(m.state.Expires), int64(m.state.Began), m.state.Asked, m.state.Before)
}

// holder returns all in which holders may differ. Its floor is compared with multiples of
// a tick only, and never lags by one.
func (e *encoder) holder(h *holder) []byte {
	part := encoder{w: e.w}
	now := e.w.mono()
	floor, later := h.clock.At(now), h.clock.At(now+int64(tick)*1000)
	part.add(int64(h.term), (int64(floor)+int64(tick)-1)/int64(tick), boolean(later > floor), h.hand.Front.Held(now))
	if h.hand.Front.Held(now) > 0 {
		part.add(h.hand.Front.Deadline, h.hand.Front.Windows.Open[0].Index)
	}
	return part.b
}

// process adds what still matters of a process.
func (e *encoder) process(p *process) {
	e.add(int64(p.role), boolean(p.sent != nil))
	if p.sent != nil {
		e.add(e.newest(p.sent.replaces), int64(p.sent.holder), boolean(p.sent.arrived), boolean(p.sent.accepted))
		if !p.sent.arrived {
			e.note(p.sent.note)
		}
	}
	if p.role == gone {
		return
	}
	if p.sent != nil {
		e.renewal(&p.sent.renewal)
	}
	e.add(p.offset)
	if p.role <= holding {
		e.add(e.newest(p.observed), min(e.w.tick-p.since, wait), int64(p.past.Served), int64(p.past.Overlap))
	}
	e.renewal(p.renewal)
	if p.renewal != nil || p.sent != nil {
		e.add(int64(e.w.now(p)))
	}
	if p.role == leading {
		e.add(int64(p.term))
		e.memory(p.memory)
	}
}

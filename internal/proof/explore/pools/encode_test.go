package pools_test

import (
	"encoding/binary"
	"slices"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// encoder appends numbers.
type encoder []byte

func (e *encoder) add(list ...int64) {
	for _, v := range list {
		*e = binary.AppendVarint(*e, v)
	}
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// encode appends what distinguishes worlds. Instants count from the present. Of
// sequence numbers and generations it matters only how they compare.
func (f *fleet) encode(b []byte, w world) []byte {
	e := encoder(b)
	e.add(w.gained, w.forgot, w.moved, w.started, w.bound)
	m := &w.pool.memory
	e.add(m.Limit, m.Bound, m.Params.Generation, max(int64(w.pool.at.Add(m.Quarantined).Sub(f.now(&w))/tick), 0))
	if f.rules.reuses {
		e.add(w.joined[:]...)
		for n := range f.holders {
			e.add(w.holders[n].share.generation)
		}
	}
	parts := f.scratch.parts[:f.holders]
	for n := range parts {
		parts[n] = parts[n][:0]
		f.encodeHolder(&parts[n], &w, n)
	}
	if f.alike() {
		slices.SortFunc(parts, slices.Compare[encoder])
	}
	for _, p := range parts {
		e = append(e, p...)
	}
	return e
}

// A scratch is memory that encode uses again, as it is called for each step that is tried. A fleet is
// searched by one goroutine at a time.
type scratch struct {
	parts   [maxHolders]encoder
	records []known
}

// A view is a pod with all that is known of it or under way to and from it.
type view struct {
	*encoder
	f       *fleet
	w       *world
	h       *holder
	records []known
	seqs    ranks // of what is under way
}

func (f *fleet) encodeHolder(e *encoder, w *world, n int) {
	h := &w.holders[n]
	v := view{encoder: e, f: f, w: w, h: h}
	v.records = v.known(n)
	v.rank()
	e.add(boolean(h.up), int64(h.policy), h.inflight, h.share.term, boolean(v.newest(h.boot, h.share.term, h.share.generation)))
	if f.fenced(w, n) {
		e.add(-1)
	} else {
		e.add(h.share.units, h.share.ends-w.ticks)
	}
	if h.inflight > 0 {
		e.add(h.over - w.ticks)
	}
	if f.keys > 0 {
		e.add(h.of[:]...)
	}
	if f.peaks {
		e.add(h.peak, h.since)
	}
	v.beat(h.beat)
	v.beat(h.stray)
	v.answer(h.answer)
	v.answer(h.overdue)
	e.add(int64(len(v.records)))
	for _, r := range v.records {
		v.record(r)
	}
}

// A known is a record of a pod's process.
type known struct {
	pool.Record
	slot int64
	age  int64 // processes since
}

// known returns what the coordinator knows of the pod's processes.
func (v *view) known(n int) []known {
	list := v.f.scratch.records[:0]
	for slot, r := range v.w.pool.memory.Holders {
		for boot := range v.h.boot + 1 {
			if r.Holder == v.f.name(n, boot) {
				list = append(list, known{r, int64(slot), v.h.boot - boot})
			}
			if v.f.rules.sameAs {
				break
			}
		}
	}
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b known) int { return int(a.age - b.age) })
	}
	v.f.scratch.records = list
	return list
}

// of returns what is known of a process.
func (v *view) of(boot int64) (known, bool) {
	for _, r := range v.records {
		if r.age == v.h.boot-boot || v.f.rules.sameAs {
			return r, true
		}
	}
	return known{}, false
}

// newest reports whether a share is the one that the coordinator issued last to its
// process. One that is not never will be.
func (v *view) newest(boot, term, generation int64) bool {
	r, found := v.of(boot)
	return found && term == v.w.pool.memory.Term && generation == r.Generation
}

// number adds what matters of a sequence number: how it compares with those that
// its process and the coordinator have seen, and with others under way.
func (v *view) number(boot, seq int64) {
	r, found := v.of(boot)
	v.add(v.h.boot-boot, v.seqs.of(seq), boolean(found && seq <= r.Seq), boolean(seq <= v.h.answered))
}

func (v *view) rank() {
	for _, b := range []*beat{v.h.beat, v.h.stray} {
		if b != nil {
			v.seqs.note(b.command.Seq)
		}
	}
	for _, a := range []*answer{v.h.answer, v.h.overdue} {
		if a != nil {
			v.seqs.note(a.grant.Seq)
		}
	}
	v.seqs.sort()
}

func (v *view) beat(b *beat) {
	if b == nil {
		v.add(0)
		return
	}
	c := b.command
	v.add(int64(c.Op), int64(b.policy), c.Term, boolean(v.newest(b.boot, c.Term, c.Applied)), c.Held, c.InFlight, c.Limit, min(v.w.ticks-b.sent, v.f.ttl()))
	v.number(b.boot, c.Seq)
	if v.f.peaks {
		v.add(c.Peak)
	}
}

func (v *view) answer(a *answer) {
	if a == nil {
		v.add(0)
		return
	}
	g := a.grant
	v.add(1, g.Term, boolean(v.newest(a.boot, g.Term, g.Generation)), g.Share, max(a.sent+int64(g.TTL/tick)-v.w.ticks, 0))
	v.number(a.boot, g.Seq)
}

func (v *view) record(r known) {
	v.add(r.age, r.Limit, r.InFlight, r.Share, r.Unacked, max(v.f.left(v.w, r.Record), 0))
	if v.f.forgets > 0 {
		v.add(r.Held)
	}
	if v.f.peaks {
		v.add(r.Peak)
	}
	if v.f.uneven {
		v.add(r.slot)
	}
}

// ranks are numbers whose order alone matters.
type ranks struct {
	list [4]int64
	n    int
}

func (r *ranks) note(list ...int64) {
	r.n += copy(r.list[r.n:], list)
}

func (r *ranks) sort() { slices.Sort(r.list[:r.n]) }

// of returns how many different numbers are smaller.
func (r *ranks) of(v int64) int64 {
	var rank int64
	for i := 0; i < r.n && r.list[i] < v; i++ {
		if i == 0 || r.list[i] != r.list[i-1] {
			rank++
		}
	}
	return rank
}

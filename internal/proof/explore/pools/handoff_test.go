package pools_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// maxGrants is the most a holder of a model gets.
const maxGrants = 3

// handoff is the module GaleHeartbeatHandoff: grants take any time and overtake each
// other, and the coordinator knows of a holder what it reported last.
type handoff struct {
	limit  int64
	grants int // to a holder from when it joins until it leaves
	params pool.Params
	rules  handoffRules
	spare  int64 // by how much the bound is lowered
}

// handoffRules take rules away.
type handoffRules struct {
	altered func(*pool.Command, node) // changes what a holder reports
	torn    bool                      // a report is made at two instants
	loose   bool                      // what is kept in reserve is not compared with the module
}

// handed is a state of it.
type handed struct {
	nodes  [2]node
	pool   *coordinator
	broken error
}

// A node has the module's variables of one holder.
type node struct {
	active   bool
	hist     [maxGrants]grant
	len      int // of hist
	applied  int // which of hist it works by, 0 before any
	inflight int64
	acked    int // which of hist it reported
	reported int64

	seq int64 // of its last report
}

// A grant is a share and its generation.
type grant struct{ share, generation int64 }

// at returns a grant by its index, which begins at 1.
func (v *node) at(i int) grant {
	if i == 0 {
		return grant{}
	}
	return v.hist[i-1]
}

// reserve is the module's Reserve.
func (v *node) reserve() int64 {
	reserve := v.reported
	for i := v.acked; i <= v.len; i++ {
		reserve = max(reserve, v.at(i).share)
	}
	return reserve
}

func (h handoff) model() explore.Model[handed, action] {
	m := explore.Model[handed, action]{Next: h.next, Encode: h.encode, Check: h.check, Bound: 2_000_000}
	for _, fleet := range [][]int{{0}, {1}, {0, 1}} {
		s := handed{pool: first()}
		for _, n := range fleet {
			s = h.join(s, n)
		}
		m.Init = append(m.Init, s)
	}
	return m
}

func (h handoff) next(s handed) iter.Seq2[action, handed] {
	return func(yield func(action, handed) bool) {
		for n := range s.nodes {
			if !s.nodes[n].active {
				if !yield(action{verb: "joins", holder: n}, h.join(s, n)) {
					return
				}
				continue
			}
			for a, next := range h.steps(s, n) {
				if !yield(a, next) {
					return
				}
			}
		}
	}
}

// steps yields what happens to a holder that lives.
func (h handoff) steps(s handed, n int) iter.Seq2[action, handed] {
	v := s.nodes[n]
	return func(yield func(action, handed) bool) {
		open := v.len == h.grants || yield(h.reallocate(s, n))
		for i := v.applied + 1; open && i <= v.len; i++ {
			next := s
			next.nodes[n].applied = i
			open = yield(action{"applies a share of", n, v.at(i).share}, next)
		}
		open = open && h.reports(s, n, yield)
		if open && v.inflight < v.at(v.applied).share {
			next := s
			next.nodes[n].inflight++
			open = yield(action{verb: "admits", holder: n}, next)
		}
		if open && v.inflight > 0 {
			next := s
			next.nodes[n].inflight--
			open = yield(action{verb: "finishes", holder: n}, next)
		}
		if open && s.nodes[1-n].active {
			yield(action{verb: "leaves", holder: n}, h.leave(s, n))
		}
	}
}

func (h handoff) join(s handed, n int) handed {
	s.nodes[n] = node{active: true}
	h.note(&s, n, pool.Beat)
	return s
}

func (h handoff) leave(s handed, n int) handed {
	h.note(&s, n, pool.Leave)
	s.nodes[n] = node{}
	return s
}

func (h handoff) reallocate(s handed, n int) (action, handed) {
	var g pool.Grant
	s.pool, g = s.pool.reallocate(names[n])
	v := &s.nodes[n]
	v.hist[v.len] = grant{g.Share, g.Generation}
	v.len++
	return action{"is granted", n, g.Share}, s
}

// reports yields what a holder can report.
func (h handoff) reports(s handed, n int, yield func(action, handed) bool) bool {
	v := s.nodes[n]
	if !h.rules.torn {
		return yield(h.report(s, n, v.applied, v.inflight, "reports"))
	}
	return yield(h.report(s, n, v.applied, v.reported, "reports what it applied")) &&
		yield(h.report(s, n, v.acked, v.inflight, "reports what it has in flight"))
}

func (h handoff) report(s handed, n, applied int, inflight int64, verb string) (action, handed) {
	s.nodes[n].acked, s.nodes[n].reported = applied, inflight
	h.note(&s, n, pool.Beat)
	return action{verb, n, inflight}, s
}

// note has the coordinator hear of a holder what the module's variables say.
func (h handoff) note(s *handed, n int, op pool.Op) {
	v := &s.nodes[n]
	v.seq++
	if op == pool.Leave {
		v.reported = 0 // what is in flight ends with its holder
	}
	c := pool.Command{Op: op, Holder: names[n], Seq: v.seq, InFlight: v.reported, Peak: v.reported}
	if v.acked > 0 {
		c.Term, c.Applied, c.Held = 1, v.at(v.acked).generation, v.at(v.acked).share
	}
	if h.rules.altered != nil {
		h.rules.altered(&c, *v)
	}
	s.pool, s.broken = s.pool.note(h.params, c)
}

// abstract appends the module's variables.
func (h handoff) abstract(e *encoder, s handed) {
	for _, v := range s.nodes {
		e.add(boolean(v.active), int64(v.len), int64(v.applied), v.inflight, int64(v.acked), v.reported)
		for _, g := range v.hist[:v.len] {
			e.add(g.share)
		}
	}
}

func (h handoff) encode(b []byte, s handed) []byte {
	e := encoder(b)
	h.abstract(&e, s)
	for n := range s.nodes {
		if r, known := s.pool.find(names[n]); known {
			e.add(r.Share, r.Unacked, boolean(r.Generation == s.nodes[n].at(s.nodes[n].applied).generation))
		}
	}
	return e
}

func (h handoff) check(s handed) error {
	if s.broken != nil {
		return s.broken
	}
	var shares, inflight int64
	for n, v := range s.nodes {
		shares += v.at(v.len).share
		inflight += v.inflight
		r, known := s.pool.find(names[n])
		if known != v.active || r.Share != v.at(v.len).share {
			return fmt.Errorf("%s: live %v with share %d, and the coordinator knows %v, %d", names[n], v.active, v.at(v.len).share, known, r.Share)
		}
		if kept := s.pool.reserve(r); !h.rules.loose && kept != v.reserve() {
			return fmt.Errorf("%s: %d are kept for it, want %d", names[n], kept, v.reserve())
		}
	}
	if shares > h.limit {
		return fmt.Errorf("shares of %d", shares)
	}
	if inflight > h.limit-h.spare {
		return fmt.Errorf("%d are in flight", inflight)
	}
	return nil
}

// measure searches the model, which has to keep its promise, and refutes that one
// less could be promised.
func (h handoff) measure(t *testing.T) (f found, depth int) {
	t.Helper()
	f, depth = survey(t, h.model(), h.abstract, func(s handed) int64 { return s.nodes[0].inflight + s.nodes[1].inflight })
	h.spare = 1
	f.steps = explore.Refute(t, h.model())
	return f, depth
}

// handoffs are the figures that searches of the published model have to find. TLC
// counts the initial state as a step of the depth: 37 with 3 grants.
var handoffs = []struct {
	limit  int64
	grants int
	found
	depth int
}{
	{4, 2, found{20_914, 4, 6}, 28},
	{4, 3, found{250_624, 4, 6}, 36},
	{6, 2, found{72_037, 6, 8}, 34},
}

func TestPublishedStatesAreReachedWhereBeatsTakeTime(t *testing.T) {
	for _, tc := range handoffs {
		t.Run(fmt.Sprintf("limit %d, %d grants", tc.limit, tc.grants), func(t *testing.T) {
			t.Parallel()
			h := handoff{limit: tc.limit, grants: tc.grants, params: fixed(tc.limit)}
			if got, depth := h.measure(t); got != tc.found || depth != tc.depth {
				t.Errorf("%+v, depth %d, want %+v, depth %d", got, depth, tc.found, tc.depth)
			}
		})
	}
}

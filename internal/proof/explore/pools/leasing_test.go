package pools_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// leasing is the module GaleHeartbeatLeasing: beats take no time. The coordinator knows at
// once what happens at a holder, and a grant is applied when it is made.
type leasing struct {
	holders int
	params  pool.Params
	altered func(*pool.Command) // changes what holders report, to take a rule away
	spare   int64               // by how much the bound is lowered
}

// leased is a state of it. Its variables are those of the module, and pool is what
// the production code knows.
type leased struct {
	active          [maxHolders]bool
	share, inflight [maxHolders]int64

	applied [maxHolders]int64 // generations
	seq     [maxHolders]int64
	pool    *coordinator
	broken  error
}

// maxHolders is the largest fleet of a model.
const maxHolders = 3

// names are the holders'.
var names = [maxHolders]string{"a", "b", "c"}

// fixed returns the parameters of a pool whose limit stands still.
func fixed(limit int64) pool.Params {
	return pool.Params{Min: limit, Max: limit, Initial: limit, TTL: tick, Quarantine: tick, Generation: 1}
}

// An action is what a holder did.
type action struct {
	verb   string
	holder int
	amount int64
}

func (a action) String() string {
	if a.amount != 0 {
		return fmt.Sprintf("%s %s %d", names[a.holder], a.verb, a.amount)
	}
	return names[a.holder] + " " + a.verb
}

func (l leasing) model() explore.Model[leased, action] {
	m := explore.Model[leased, action]{
		Next: l.next, Encode: l.encode, Check: l.check, Bound: 100_000,
	}
	for fleet := 1; fleet < 1<<l.holders; fleet++ {
		s := leased{pool: first()}
		for n := range l.holders {
			if fleet>>n&1 == 1 {
				s = l.join(s, n)
			}
		}
		m.Init = append(m.Init, s)
	}
	return m
}

func (l leasing) next(s leased) iter.Seq2[action, leased] {
	return func(yield func(action, leased) bool) {
		for n := range l.holders {
			for a, next := range l.steps(s, n) {
				if !yield(a, next) {
					return
				}
			}
		}
	}
}

// steps yields what a holder can do.
func (l leasing) steps(s leased, n int) iter.Seq2[action, leased] {
	return func(yield func(action, leased) bool) {
		if !s.active[n] {
			yield(action{verb: "joins", holder: n}, l.join(s, n))
			return
		}
		_ = yield(action{verb: "beats", holder: n}, l.reallocate(s, n)) &&
			(s.inflight[n] >= s.share[n] || yield(action{verb: "admits", holder: n}, l.move(s, n, 1))) &&
			(s.inflight[n] == 0 || yield(action{verb: "finishes", holder: n}, l.move(s, n, -1))) &&
			(s.alone(n) || yield(action{verb: "leaves", holder: n}, l.leave(s, n)))
	}
}

// alone reports whether no other holder lives.
func (s *leased) alone(n int) bool {
	for m, active := range s.active {
		if active && m != n {
			return false
		}
	}
	return true
}

func (l leasing) join(s leased, n int) leased {
	s.active[n] = true
	l.report(&s, n, pool.Beat)
	return s
}

func (l leasing) leave(s leased, n int) leased {
	s.active[n], s.share[n], s.inflight[n] = false, 0, 0
	l.report(&s, n, pool.Leave)
	s.applied[n], s.seq[n] = 0, 0
	return s
}

func (l leasing) move(s leased, n int, by int64) leased {
	s.inflight[n] += by
	l.report(&s, n, pool.Beat)
	return s
}

func (l leasing) reallocate(s leased, n int) leased {
	var g pool.Grant
	s.pool, g = s.pool.reallocate(names[n])
	s.share[n], s.applied[n] = g.Share, g.Generation
	l.report(&s, n, pool.Beat)
	return s
}

// report sends the coordinator all about a holder.
func (l leasing) report(s *leased, n int, op pool.Op) {
	s.seq[n]++
	c := pool.Command{
		Op: op, Holder: names[n], Seq: s.seq[n], Applied: s.applied[n],
		Held: s.share[n], InFlight: s.inflight[n], Peak: s.inflight[n],
	}
	if c.Applied > 0 {
		c.Term = 1
	}
	if l.altered != nil {
		l.altered(&c)
	}
	s.pool, s.broken = s.pool.note(l.params, c)
}

// abstract appends the module's variables.
func (l leasing) abstract(e *encoder, s leased) {
	for n := range l.holders {
		e.add(boolean(s.active[n]), s.share[n], s.inflight[n])
	}
}

func (l leasing) encode(b []byte, s leased) []byte {
	e := encoder(b)
	l.abstract(&e, s)
	for _, r := range s.pool.memory.Holders {
		e.add(int64(r.Holder[0]), r.Share, s.pool.reserve(r))
	}
	return e
}

func (l leasing) check(s leased) error {
	if s.broken != nil {
		return s.broken
	}
	for n := range l.holders {
		r, known := s.pool.find(names[n])
		if known != s.active[n] || r.Share != s.share[n] {
			return fmt.Errorf("%s: live %v with share %d, and the coordinator knows %v, %d", names[n], s.active[n], s.share[n], known, r.Share)
		}
		if want := max(s.share[n], s.inflight[n]); l.altered == nil && s.pool.reserve(r) != want {
			return fmt.Errorf("%s: %d are kept for it, want %d", names[n], s.pool.reserve(r), want)
		}
	}
	if total := sum(s.share); total > l.params.Max {
		return fmt.Errorf("shares of %d", total)
	}
	if total := sum(s.inflight); total > l.params.Max-l.spare {
		return fmt.Errorf("%d are in flight", total)
	}
	return nil
}

func sum(list [maxHolders]int64) int64 {
	var total int64
	for _, v := range list {
		total += v
	}
	return total
}

// measure searches the model, which has to keep its promise, and refutes that one
// less could be promised.
func (l leasing) measure(t *testing.T) found {
	t.Helper()
	f, _ := survey(t, l.model(), l.abstract, func(s leased) int64 { return sum(s.inflight) })
	l.spare = 1
	f.steps = explore.Refute(t, l.model())
	return f
}

// leasings are the figures that searches of the published model have to find.
var leasings = []struct {
	config     string // in spec/; empty where the module rounds the targets of all up
	holders    int
	limit      int64
	allocation pool.Allocation
	found
}{
	{"2-4", 2, 4, pool.EqualSplit, found{76, 4, 5}},
	{"2-6", 2, 6, pool.EqualSplit, found{149, 6, 7}},
	{"", 3, 4, pool.EqualSplit, found{459, 4, 5}},
	{"3-6", 3, 6, pool.EqualSplit, found{1432, 6, 7}},
	{"2-4-demand", 2, 4, pool.DemandProportional, found{112, 4, 5}},
	{"3-2-demand", 3, 2, pool.DemandProportional, found{103, 2, 3}},
}

func TestPublishedStatesAreReached(t *testing.T) {
	for _, tc := range leasings {
		for handoff, name := range map[pool.Handoff]string{pool.Acknowledged: "acknowledged", pool.Occupancy: "occupancy"} {
			t.Run(fmt.Sprintf("%d holders, limit %d, allocation %d, %s", tc.holders, tc.limit, tc.allocation, name), func(t *testing.T) {
				l := leasing{holders: tc.holders, params: fixed(tc.limit)}
				l.params.Allocation, l.params.Handoff = tc.allocation, handoff
				if got := l.measure(t); got != tc.found {
					t.Errorf("%+v, want %+v", got, tc.found)
				}
			})
		}
	}
}

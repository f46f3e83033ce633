package audit

import (
	"fmt"
	"slices"
	"testing"
)

// overshoot returns Δ by brute force.
func (x *truth) overshoot(limit int64) int64 {
	var worst int64
	for _, k := range x.keys {
		worst = max(worst, k.Admitted-limit)
	}
	return worst
}

// unused returns U in basis points.
func (x *truth) unused(limit int64) int32 {
	refused := max(0, min(x.total.Admitted+x.total.Refused, limit)-x.total.Admitted)
	return int32(float64(refused) / float64(limit) * BasisPoints)
}

// check compares every window that is measured with the truth.
func (s *simulation) check() {
	for id, w := range s.limit.windows {
		if !w.measured || !w.began.After(s.limit.since) {
			continue
		}
		ceilings := s.limit.ceilingsOf(w)
		limit := ceilings("").most
		m, x := w.measure(ceilings, 0, 0), s.truth(id)
		absent := slices.ContainsFunc(s.all, func(p *process) bool { return !p.connected && len(p.counts(id)) > 0 })
		switch {
		case m.known && len(x.forgotten) > 0:
			s.t.Fatalf("tick %d: window %v is known although the counts of %v are lost", s.ticks, id, x.forgotten)
		case m.known && !absent && m.overshoot != x.overshoot(limit):
			s.t.Fatalf("tick %d: window %v has Δ %d, truth is %d of %v", s.ticks, id, m.overshoot, x.overshoot(limit), x.keys)
		case m.known && !s.keyed && !absent && m.unused != x.unused(limit):
			s.t.Fatalf("tick %d: window %v has %d unused, truth is %+v of %d", s.ticks, id, m.unused, x.total, limit)
		case m.overshoot > x.overshoot(limit):
			s.t.Fatalf("tick %d: window %v has Δ %d, more than the truth %d", s.ticks, id, m.overshoot, x.overshoot(limit))
		}
		if m.known && !absent {
			s.known[id] = true
			s.worst = max(s.worst, m.overshoot)
		}
	}
}

// The figures of a random fleet are those of a brute-force sum, with streams that
// break, rows that are sent again or late, processes that die, and processes that
// admit too much.
func TestFiguresAreThoseOfABruteForceSum(t *testing.T) {
	var known, all int
	for seed := range uint64(150) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := newSimulation(t, seed)
			for range 300 {
				s.step(false)
			}
			for range 150 { // no traffic: everything is accounted for
				s.step(true)
			}
			got := s.limit.Figures(s.now)
			if got.Overshoot != nil && got.Overshoot.Worst < s.worst {
				t.Errorf("worst overshoot = %d, less than %d that was measured", got.Overshoot.Worst, s.worst)
			}
			known += len(s.known)
			all += len(s.truths)
		})
	}
	if known*2 < all {
		t.Errorf("%d of %d windows were measured, fewer than half", known, all)
	}
	t.Logf("%d of %d windows were measured", known, all)
}

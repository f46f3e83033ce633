package leaders_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
)

// A model is a succession that keeps its promise, and what a search of it has to find.
type model struct {
	name string
	figures
	of *succession
}

type figures struct {
	states int
	steps  int   // of the shortest history that admits all that may be
	serves int64 // ticks until somebody serves again at most, once nothing goes wrong any more
}

// of returns a model of two nodes. The clock of one is ahead by two windows.
func of(change func(*succession)) *succession {
	s := &succession{
		offsets: [][]int64{{4, 0}, {0, 4}}, ticks: 6, window: 2, limit: 1, batch: 1, holders: 1, rules: production(),
	}
	change(s)
	return s
}

// agree has the clocks of two nodes agree, ahead that of the first be ahead.
var (
	agree = [][]int64{{0, 0}}
	ahead = [][]int64{{4, 0}}
)

// unseen has a process begin that never saw the Lease, on a node whose clock is behind. The
// store's clock returns to what was served, and may stop in the midst of a window there.
func unseen(s *succession) {
	s.deleted, s.unseen, s.again, s.offsets, s.ticks = true, true, 1, [][]int64{{6, 0}}, 8
}

func models() []model {
	return []model{
		{"a leader crashes, clocks agree", figures{28389, 3, 5}, of(func(s *succession) { s.crashes, s.holders, s.offsets = 1, 2, agree })},
		{"a leader crashes, clocks differ", figures{60032, 3, 5}, of(func(s *succession) { s.crashes, s.holders = 1, 2 })},
		{"a leader crashes, clocks differ and are set", figures{71965, 3, 5}, of(func(s *succession) { s.crashes, s.sets, s.setBy, s.offsets = 1, 1, 4, ahead })},
		{"leaders hand over, clocks agree", figures{68272, 3, 3}, of(func(s *succession) { s.orderly, s.offsets = true, agree })},
		{"leaders hand over, clocks differ", figures{89761, 3, 3}, of(func(s *succession) { s.orderly, s.offsets = true, ahead })},
		{"leaders hand over or crash, clocks are set", figures{117061, 3, 5}, of(func(s *succession) {
			s.orderly, s.crashes, s.sets, s.setBy, s.offsets, s.ticks = true, 1, 1, 4, agree, 4
		})},
		{"renewals are late", figures{94863, 6, 3}, of(func(s *succession) { s.late, s.offsets, s.ticks = true, ahead, 5 })},
		{"renewals are lost", figures{55582, 3, 2}, of(func(s *succession) { s.lost = 2 })},
		{"three nodes", figures{41336, 3, 3}, of(func(s *succession) { s.offsets, s.orderly, s.ticks = [][]int64{{4, 0, 2}}, true, 3 })},
		{"the Lease is deleted, clocks agree", figures{41699, 3, 4}, of(func(s *succession) { s.deleted, s.offsets = true, agree })},
		{"the Lease is deleted before a process sees it, one window is served again", figures{91135, 14, 6}, of(unseen)},
	}
}

func TestPromisesHoldInEveryHistory(t *testing.T) {
	for _, m := range models() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var serves int64
			r := explore.Hold(t, m.of.model(), func(w world) { serves = max(serves, m.of.recover(w)) })
			got := figures{r.States, explore.Refute(t, m.of.tight().model()), serves}
			if got != m.figures {
				t.Errorf("%+v, want %+v", got, m.figures)
			}
		})
	}
}

// recover lets all processes try and renew each tick and a holder ask, and returns after
// how many ticks it is granted something;
// 0 when none of the processes is left.
func (s *succession) recover(w world) int64 {
	w.holders = []holder{w.holders[0]}
	for took := range int64(20) {
		for i := range w.processes {
			if sent := w.processes[i].sent; sent != nil && !sent.arrived {
				s.arrive(&w, i)
			}
			if w.processes[i].sent != nil {
				s.answer(&w, i)
			}
			switch p := w.processes[i]; {
			case p.role == holding && p.renewal.Holds(w.boot(), span):
				s.begin(&w, i)
			case p.role == sealed:
				s.release(&w, i)
				s.arrive(&w, i)
				s.answer(&w, i)
			case p.role != gone && s.try(&w, i):
				s.arrive(&w, i)
				s.answer(&w, i)
			}
		}
		for i, p := range w.processes {
			if p.role == leading && p.term >= w.holders[0].term && s.lease(&w, 0, i) > 0 {
				return took
			}
		}
		w.tick++
	}
	for _, p := range w.processes {
		if p.role != gone {
			panic("nobody serves again")
		}
	}
	return 0 // the model has no more processes
}

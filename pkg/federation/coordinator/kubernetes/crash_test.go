package kubernetes_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestCrashes lets 200 processes crash one after another under load, at random points:
// while the record is loaded or taken over, before a write, and between the write and
// the grant. No window is granted beyond its limit, and no crash forfeits more than a
// block.
func TestCrashes(t *testing.T) {
	const limit, block = 1000, 50
	dice := seeded(t)
	p := params(limit, block)
	kept, now := newJournal(), suite.NewClock(suite.Start)
	holders := make([]*holder, 8)
	for i := range holders {
		holders[i] = newHolder(i)
	}
	forfeited, crashes := int64(0), 0
	for range 200 {
		if dice.IntN(3) == 0 {
			now.Advance(limiter.Micros(dice.Int64N(int64(2 * limiter.Second))))
		}
		before, _ := kept.record(id)
		had := granted(holders)
		run := start(kept, now, 1+dice.IntN(12), dice.IntN(3) > 0)
		load(t, run, holders, p, now, dice)
		after, ok := kept.record(id)
		if !ok {
			continue
		}
		own := after.Reserved
		if before.Index == after.Index {
			own -= before.Reserved
		}
		lost := own - (granted(holders)[after.Index] - had[after.Index])
		if lost < 0 || lost > block {
			t.Fatalf("a crash forfeited %d units, at most a block of %d may be: %+v", lost, block, after)
		}
		forfeited += lost
		crashes++
		requireWithin(t, holders, limit)
	}
	if forfeited == 0 {
		t.Error("no crash forfeited anything: none of them happened between a write and a grant")
	}
	t.Logf("%d crashes forfeited %d units of a block of %d", crashes, forfeited, block)
}

// load leases from all holders at once until the process is gone or the limit is.
func load(t *testing.T, run *process, holders []*holder, p ledger.Params, now *suite.Clock, dice *rand.Rand) {
	t.Helper()
	var all sync.WaitGroup
	for _, h := range holders {
		own := rand.New(rand.NewPCG(dice.Uint64(), 0))
		all.Go(func() {
			for range 60 {
				want := 1 + own.Int64N(p.Block)
				if _, err := h.lease(t.Context(), run.Coordinator, p, 1+own.Int64N(want), want); err != nil {
					return
				}
				if own.IntN(200) == 0 {
					now.Advance(limiter.Second / 2)
				}
			}
		})
	}
	all.Wait()
	run.Settle()
}

// TestTwoAtOnce lets processes come and go that all believe to lead, up to four at a
// time, with clocks that differ, and answers of writes that are lost.
func TestTwoAtOnce(t *testing.T) {
	const limit, block = 600, 40
	dice := seeded(t)
	p := params(limit, block)
	kept := newJournal()
	var conflicts, units uint64
	now, clocks := suite.Start, make([]*suite.Clock, 4)
	runs := make([]*process, len(clocks))
	for i := range runs {
		clocks[i] = suite.NewClock(now)
		runs[i] = start(kept, clocks[i], 1<<30, false)
	}
	holders := make([]*holder, 8)
	for i := range holders {
		holders[i] = newHolder(i)
	}
	for range 100 {
		kept.lose(dice.IntN(4) == 0)
		var all sync.WaitGroup
		for _, h := range holders {
			own := rand.New(rand.NewPCG(dice.Uint64(), 0))
			all.Go(func() {
				for range 10 {
					want := 1 + own.Int64N(block)
					_, _ = h.lease(t.Context(), runs[own.IntN(len(runs))].Coordinator, p, 1, want)
				}
			})
		}
		all.Wait()
		requireWithin(t, holders, limit)
		now = now.Add(limiter.Micros(dice.Int64N(int64(limiter.Second))))
		for i := range clocks {
			clocks[i].Set(now.Add(limiter.Micros(dice.Int64N(int64(200 * limiter.Millisecond)))))
			runs[i].Resume()
		}
		if gone := dice.IntN(len(runs)); dice.IntN(8) == 0 {
			conflicts += runs[gone].Stats().Conflicts
			runs[gone] = start(kept, clocks[gone], 1<<30, false)
		}
	}
	for _, run := range runs {
		run.Settle()
		conflicts += run.Stats().Conflicts
	}
	for _, sum := range granted(holders) {
		units += uint64(sum)
	}
	if conflicts == 0 || units == 0 {
		t.Errorf("%d memories were overtaken and %d units granted: the test tests nothing", conflicts, units)
	}
}

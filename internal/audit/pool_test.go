package audit

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

var poolStart = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// A reporting is a pool whose members report once a second.
type reporting struct {
	*Pool
	now     time.Time
	members []Holder
	said    map[Holder]*PoolReport
}

func newReporting(members int, c PoolConfig) *reporting {
	r := &reporting{Pool: NewPool(time.Second, c), now: poolStart, said: map[Holder]*PoolReport{}}
	for i := range members {
		h := Holder{PodUID: fmt.Sprint("uid-", i), Nonce: "1"}
		r.members = append(r.members, h)
		r.said[h] = &PoolReport{
			Generation: c.Generation, Share: 5, Ceiling: 5, InFlight: 5, Peak: 5, Limit: 10, Holders: int64(members), Occupied: 10, Bound: 10,
		}
		r.Join(h, r.now)
	}
	return r
}

// second lets a second pass in which each member admits 10 requests and the change
// happens to what they say.
func (r *reporting) second(change func(i int, said *PoolReport)) {
	r.now = r.now.Add(time.Second)
	for i, h := range r.members {
		r.said[h].Admitted += 10
		if change != nil {
			change(i, r.said[h])
		}
		r.Report(h, *r.said[h], r.now)
	}
	r.Advance(r.now)
}

func (r *reporting) seconds(n int, change func(i int, said *PoolReport)) PoolFigures {
	for range n {
		r.second(change)
	}
	return r.Figures(r.now)
}

func TestUnusedIsWhatWasFreeWhileRequestsWereRefused(t *testing.T) {
	refuses := func(who int) func(int, *PoolReport) {
		return func(i int, said *PoolReport) {
			if i == who {
				said.Refused++
			}
		}
	}
	tests := map[string]struct {
		said func(i int, said *PoolReport)
		want int32
	}{
		"nobody refuses, whatever is free": {
			said: func(_ int, said *PoolReport) { said.InFlight = 0 }, want: 0,
		},
		"all is in use": {said: refuses(0), want: 0},
		"one refuses at its share, the other idles": {
			said: func(i int, said *PoolReport) {
				refuses(0)(i, said)
				if i == 1 {
					said.InFlight = 1
				}
			}, want: 4000,
		},
		"one that refuses had its peak in flight when it did": {
			said: func(i int, said *PoolReport) {
				refuses(0)(i, said)
				said.InFlight = map[int]int64{0: 0, 1: 4}[i]
			}, want: 1000,
		},
		"one that is fenced refuses for another reason": {
			said: func(i int, said *PoolReport) {
				refuses(0)(i, said)
				said.InFlight, said.Fenced = 0, i == 0
			}, want: 0,
		},
		"more in flight than the limit is not less than nothing": {
			said: func(i int, said *PoolReport) { refuses(0)(i, said); said.InFlight, said.Peak = 9, 9 }, want: 0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReporting(2, PoolConfig{Generation: 1, Bounded: true})
			if f := r.seconds(9, tc.said); f.UnderUtilization != nil {
				t.Errorf("after nine seconds: %+v, want nothing before a span is over", f.UnderUtilization)
			}
			f := r.seconds(6, tc.said)
			if want := (&UnderUtilization{Observed: tc.want, Worst: tc.want}); cmp.Diff(want, f.UnderUtilization) != "" {
				t.Errorf("unused = %+v, want %+v", f.UnderUtilization, want)
			}
			f = r.seconds(25, func(_ int, said *PoolReport) { said.InFlight, said.Fenced = 5, false })
			if want := (&UnderUtilization{Worst: tc.want}); cmp.Diff(want, f.UnderUtilization) != "" {
				t.Errorf("later: unused = %+v, want the worst only: %+v", f.UnderUtilization, want)
			}
		})
	}
}

func TestOvershootOfAPool(t *testing.T) {
	tests := map[string]struct {
		config PoolConfig
		said   func(said *PoolReport)
		want   Verdict
		worst  int64
		free   bool // unbounded
	}{
		"what is in flight fits": {config: PoolConfig{Generation: 1, Bounded: true}, said: func(*PoolReport) {}, want: Measured},
		"one too many": {
			config: PoolConfig{Generation: 1, Bounded: true}, said: func(said *PoolReport) { said.Occupied = 11 }, want: Exceeded, worst: 1,
		},
		"one too many where nothing is promised": {
			config: PoolConfig{Generation: 1}, said: func(said *PoolReport) { said.Occupied = 11 }, want: Measured, worst: 1, free: true,
		},
		"one too many of an older generation": {
			config: PoolConfig{Generation: 1, Bounded: true},
			said:   func(said *PoolReport) { said.Occupied, said.Generation = 11, 0 }, want: Starting,
		},
		"a coordinator that has not answered": {
			config: PoolConfig{Generation: 1, Bounded: true},
			said:   func(said *PoolReport) { said.Occupied, said.Bound, said.Limit = 0, 0, 0 }, want: Starting,
		},
		"a pod that admits by itself": {
			config: PoolConfig{Generation: 1, Bounded: true},
			said:   func(said *PoolReport) { said.Share, said.Occupied = 0, 17 }, want: FailOpen, worst: 7, free: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReporting(2, tc.config)
			f := r.seconds(2, func(i int, said *PoolReport) {
				if i == 0 {
					tc.said(said)
					return
				}
				said.Generation, said.Limit, said.Bound = r.said[r.members[0]].Generation, r.said[r.members[0]].Limit, r.said[r.members[0]].Bound
				said.Occupied = said.Bound
			})
			if f.Verdict != tc.want {
				t.Errorf("verdict = %v, want %v", f.Verdict, tc.want)
			}
			switch {
			case f.Overshoot == nil:
				if tc.worst > 0 {
					t.Error("no overshoot was measured")
				}
			case f.Overshoot.Worst != tc.worst || f.Overshoot.Observed != tc.worst || f.Overshoot.Unbounded != tc.free:
				t.Errorf("overshoot = %+v, want %d", f.Overshoot, tc.worst)
			}
		})
	}
}

// What was once exceeded stays so until another generation, and what was observed goes.
func TestABrokenBoundIsRememberedForItsGeneration(t *testing.T) {
	r := newReporting(2, PoolConfig{Generation: 1, Bounded: true})
	r.second(func(i int, said *PoolReport) { said.Occupied = 13 })
	broke := r.now
	f := r.seconds(30, func(_ int, said *PoolReport) { said.Occupied = 10 })
	if want := (&PoolOvershoot{Worst: 3, WorstTime: broke}); f.Verdict != Exceeded || cmp.Diff(want, f.Overshoot) != "" {
		t.Errorf("verdict %v, overshoot %+v, want a worst one of 3", f.Verdict, f.Overshoot)
	}
	r.Reconfigure(PoolConfig{Generation: 2, Bounded: true}, r.now)
	if f := r.Figures(r.now); f.Verdict != Starting || f.Overshoot != nil || f.UnderUtilization != nil {
		t.Errorf("figures of another generation = %+v, want none yet", f)
	}
	f = r.seconds(1, func(_ int, said *PoolReport) { said.Generation = 2 })
	if f.Verdict != Measured {
		t.Errorf("verdict %v, want Measured", f.Verdict)
	}
}

// Requests that a pod admitted by itself may run on when it has its share again.
func TestWhatWasAdmittedLocallyIsNotHeldAgainstTheBound(t *testing.T) {
	r := newReporting(2, PoolConfig{Generation: 1, Bounded: true})
	r.second(func(_ int, said *PoolReport) { said.Share = 0 })
	f := r.seconds(1, func(_ int, said *PoolReport) { said.Share, said.Occupied = 5, 20 })
	if f.Verdict != Measured || !f.Overshoot.Unbounded || f.Overshoot.Worst != 10 {
		t.Errorf("verdict %v, overshoot %+v, want one that nothing bounds", f.Verdict, f.Overshoot)
	}
	f = r.seconds(61, nil)
	if f.Verdict != Exceeded {
		t.Errorf("a minute later: verdict %v, want Exceeded", f.Verdict)
	}
}

func TestAPodThatAdmittedByItselfAndLeftDoesNoMore(t *testing.T) {
	r := newReporting(2, PoolConfig{Generation: 1, Bounded: true})
	r.seconds(1, func(i int, said *PoolReport) { said.Ceiling += int64(i) })
	r.Leave(r.members[1])
	if f := r.Figures(r.now); f.Verdict != Measured {
		t.Errorf("verdict %v, want Measured", f.Verdict)
	}
}

func TestAMemberThatDoesNotReportIsMissed(t *testing.T) {
	r := newReporting(2, PoolConfig{Generation: 1, Bounded: true})
	r.seconds(3, nil)
	silent := r.members[1]
	r.members = r.members[:1]
	if f := r.seconds(4, nil); f.Verdict != Measured {
		t.Errorf("verdict %v, want patience", f.Verdict)
	}
	if f := r.seconds(1, nil); f.Verdict != ReportsMissing {
		t.Errorf("verdict %v, want ReportsMissing", f.Verdict)
	}
	r.Leave(silent)
	if f := r.Figures(r.now); f.Verdict != Measured || f.InFlight != 5 {
		t.Errorf("figures = %+v, want nothing of one that left", f)
	}
	r.Leave(r.members[0])
	if f := r.Figures(r.now); f.Limit != 0 || f.Holders != 0 {
		t.Errorf("figures = %+v, want no limit that nobody tells", f)
	}
}

func TestRatesOfAPool(t *testing.T) {
	r := newReporting(2, PoolConfig{Generation: 1, Bounded: true})
	for _, h := range r.members {
		r.said[h].Admitted, r.said[h].Refused = 1_000_000, 1_000_000 // before this audit
	}
	f := r.seconds(30, func(i int, said *PoolReport) {
		said.Refused += 2
		said.Partitions = []PartitionReport{{Name: "live", Guaranteed: 4, InFlight: 3, Refused: said.Refused}}
	})
	if f.AdmittedPerSecond < 19 || f.AdmittedPerSecond > 22 || f.RejectedPerSecond < 3.8 || f.RejectedPerSecond > 4.4 {
		t.Errorf("%v admitted and %v refused a second, want 20 and 4", f.AdmittedPerSecond, f.RejectedPerSecond)
	}
	if !f.Saturated {
		t.Error("not saturated while requests are refused")
	}
	if p := f.Partitions[0]; p.Guaranteed != 8 || p.InFlight != 6 || p.RejectedPerSecond < 3.8 || p.RejectedPerSecond > 4.4 {
		t.Errorf("partition = %+v, want 8 slots, 6 in flight and 4 refused a second", p)
	}
	if f = r.seconds(10, nil); f.Saturated {
		t.Error("saturated ten seconds after the last refusal")
	}
	if f = r.seconds(1, func(_ int, said *PoolReport) { said.Queued = 1 }); !f.Saturated || f.Queued != 2 {
		t.Errorf("figures = %+v, want two that wait", f)
	}
}

func TestLatencyOfAPoolIsTheMedian(t *testing.T) {
	r := newReporting(4, PoolConfig{Generation: 1})
	f := r.seconds(1, func(i int, said *PoolReport) {
		said.Baseline, said.Latency = limiter.Micros(10*i), limiter.Micros(100*i)
		said.Quarantined = limiter.Micros(i)
		said.Fenced = i == 3
	})
	if f.Baseline != 20 || f.Latency != 200 || f.Measuring != 3 || f.Quarantined != 3 || f.CutOff != 1 {
		t.Errorf("figures = %+v, want medians over those that measured", f)
	}
	// A holder that is fenced or unanswered tells an old limit.
	f = r.seconds(1, func(i int, said *PoolReport) {
		said.Limit, said.Fenced, said.CoordinatorError = int64(10+i), i == 3, map[int]string{2: "no route"}[i]
	})
	if f.Limit != 11 {
		t.Errorf("limit = %d, want the last that is from now", f.Limit)
	}
}

// What a holder refuses because it never had a share says nothing of the limit.
func TestAHolderThatWasNeverAnsweredIsCutOff(t *testing.T) {
	r := newReporting(2, PoolConfig{Generation: 1, Bounded: true})
	f := r.seconds(3, func(_ int, said *PoolReport) {
		*said = PoolReport{Generation: 1, Refused: said.Refused + 10, CoordinatorError: "no such host"}
	})
	if f.CutOff != 2 || f.Saturated {
		t.Errorf("figures = %+v, want both cut off and nothing saturated", f)
	}
}

// Figures are of a generation when all holders told of it, with the limit that their
// coordinator answered under it.
func TestFiguresWaitUntilAllHoldersTellOfAGeneration(t *testing.T) {
	r := newReporting(2, PoolConfig{Generation: 1, Bounded: true})
	r.seconds(2, nil)
	r.Reconfigure(PoolConfig{Generation: 2, Bounded: true}, r.now)
	if f := r.Figures(r.now); !f.Pending || f.Limit != 0 || f.Verdict != Starting {
		t.Errorf("at once: figures = %+v, want none", f)
	}
	if f := r.seconds(1, nil); !f.Pending || f.Limit != 0 {
		t.Errorf("of the generation before: figures = %+v, want none", f)
	}
	first := func(limit int64) func(int, *PoolReport) {
		return func(i int, said *PoolReport) {
			if i == 0 {
				said.Generation, said.Limit = 2, limit
			}
		}
	}
	if f := r.seconds(1, first(0)); !f.Pending {
		t.Errorf("before an answer: figures = %+v, want none", f)
	}
	if f := r.seconds(1, first(7)); !f.Pending || f.Limit != 7 {
		t.Errorf("of one holder: figures = %+v, want to wait for the other", f)
	}
	other := *r.said[r.members[1]]
	if f := r.seconds(1, func(_ int, said *PoolReport) { said.Generation, said.Limit = 2, 7 }); f.Pending || f.Limit != 7 || f.Verdict != Measured {
		t.Errorf("of both: figures = %+v, want them measured", f)
	}
	*r.said[r.members[1]] = other
	r.Reconfigure(PoolConfig{Generation: 3, Bounded: true}, r.now)
	if f := r.seconds(silentAfter+1, func(i int, said *PoolReport) { said.Generation = 3 - int64(i) }); f.Pending {
		t.Errorf("later: figures = %+v, want not to wait for one that does not tell", f)
	}
}

// In Shadow the coordinator does not know of what passes without a slot. When that is
// over, what passed is in flight for a while, and not held against the bound.
func TestWhatPassesWithoutASlotCounts(t *testing.T) {
	r := newReporting(2, PoolConfig{Generation: 1})
	spare := func(i int, said *PoolReport) {
		if i == 0 {
			said.InFlight, said.Peak, said.Spared = 12, 25, 20
			said.Refused += 20
		} else {
			said.InFlight = 1
		}
	}
	f := r.seconds(12, spare)
	if f.Verdict != Measured || f.InFlight != 13 || f.Spared != 20 || f.Overshoot.Worst != 16 || !f.Overshoot.Unbounded {
		t.Errorf("in Shadow: figures = %+v, overshoot %+v, want 13 in flight and 16 too many at the peak", f, f.Overshoot)
	}
	if u := f.UnderUtilization; u == nil || u.Observed != 4000 {
		t.Errorf("unused = %+v, want what the other's slots leave", u)
	}
	r.Reconfigure(PoolConfig{Generation: 2, Bounded: true}, r.now)
	f = r.seconds(2, func(i int, said *PoolReport) {
		spare(i, said)
		said.Generation = 2
	})
	if f.Verdict != Starting || f.Overshoot.Worst != 16 || !f.Overshoot.Unbounded {
		t.Errorf("back in Enforce: figures = %+v, overshoot %+v, want Starting and no bound", f, f.Overshoot)
	}
	f = r.seconds(2, func(_ int, said *PoolReport) { said.InFlight, said.Peak, said.Spared = 5, 5, 0 })
	if f.Verdict != Measured || !f.Overshoot.Unbounded || f.Overshoot.Worst != 16 {
		t.Errorf("when they ended: figures = %+v, overshoot %+v, want Measured", f, f.Overshoot)
	}
}

func TestFencesAreCountedOnce(t *testing.T) {
	p, h := NewPool(time.Second, PoolConfig{}), Holder{PodUID: "uid", Nonce: "1"}
	if got := p.Report(h, PoolReport{Fences: 3}, poolStart); got != 0 {
		t.Errorf("%d fences of no member, want none", got)
	}
	p.Join(h, poolStart)
	for i, step := range []struct{ fences, want int64 }{{3, 0}, {3, 0}, {5, 2}, {1, 0}} {
		if got := p.Report(h, PoolReport{Fences: step.fences}, poolStart); got != step.want {
			t.Errorf("report %d: %d fences are news, want %d", i, got, step.want)
		}
	}
}

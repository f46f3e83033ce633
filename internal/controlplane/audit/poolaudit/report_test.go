package poolaudit

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
)

// Refusals of a holder that never had a share say nothing of the limit.
func TestAHolderThatWasNeverAnsweredIsCutOff(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	f := r.seconds(3, func(_ int, said *Report) {
		*said = Report{Generation: 1, Refused: said.Refused + 10, CoordinatorError: "no such host"}
	})
	if f.CutOff != 2 || f.Saturated {
		t.Errorf("figures = %+v, want both cut off and nothing saturated", f)
	}
}

// In Shadow the coordinator does not know of requests that pass without a slot. When that is
// over, they are in flight for a while, and not held against the bound.
func TestRequestsWithoutASlotCount(t *testing.T) {
	r := newReporting(2, Config{Generation: 1})
	spare := func(i int, said *Report) {
		if i == 0 {
			said.InFlight, said.Peak, said.Spared = 12, 25, 20
			said.Refused += 20
		} else {
			said.InFlight = 1
		}
	}
	f := r.seconds(12, spare)
	if f.Verdict != audit.Measured || f.InFlight != 13 || f.Spared != 20 || f.Overshoot.Worst != 16 || !f.Overshoot.Unbounded {
		t.Errorf("in Shadow: figures = %+v, overshoot %+v, want 13 in flight and 16 too many at the peak", f, f.Overshoot)
	}
	if u := f.UnderUtilization; u == nil || u.Observed != 4000 {
		t.Errorf("unused = %+v, want what the other's slots leave", u)
	}
	r.Reconfigure(Config{Generation: 2, Bounded: true}, r.now)
	f = r.seconds(2, func(i int, said *Report) {
		spare(i, said)
		said.Generation = 2
	})
	if f.Verdict != audit.Starting || f.Overshoot.Worst != 16 || !f.Overshoot.Unbounded {
		t.Errorf("back in Enforce: figures = %+v, overshoot %+v, want Starting and no bound", f, f.Overshoot)
	}
	f = r.seconds(2, func(_ int, said *Report) { said.InFlight, said.Peak, said.Spared = 5, 5, 0 })
	if f.Verdict != audit.Measured || !f.Overshoot.Unbounded || f.Overshoot.Worst != 16 {
		t.Errorf("when they ended: figures = %+v, overshoot %+v, want Measured", f, f.Overshoot)
	}
}

func TestFencesAreCountedOnce(t *testing.T) {
	p, h := New(time.Second, Config{}), audit.NewHolder("uid", "1")
	if got := p.Report(h, Report{Fences: 3}, poolStart); got != 0 {
		t.Errorf("%d fences of no member, want none", got)
	}
	p.Join(h, poolStart)
	for i, step := range []struct{ fences, want int64 }{{3, 0}, {3, 0}, {5, 2}, {1, 0}} {
		if got := p.Report(h, Report{Fences: step.fences}, poolStart); got != step.want {
			t.Errorf("report %d: %d fences are news, want %d", i, got, step.want)
		}
	}
}

// Requests that have no key never asked for a slot: they are no demand.
func TestRequestsWithoutAKeySaturateNothing(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	for _, h := range r.members {
		r.said[h].KeyMissing = 1_000_000 // before this audit
	}
	f := r.seconds(30, func(_ int, said *Report) { said.KeyMissing += 3 })
	if f.KeyMissingPerSecond < 5.8 || f.KeyMissingPerSecond > 6.4 {
		t.Errorf("%v a second lack the key, want 6", f.KeyMissingPerSecond)
	}
	if f.Saturated || f.RejectedPerSecond != 0 || f.UnderUtilization.Worst != 0 {
		t.Errorf("figures = %+v, want nothing refused a slot", f)
	}
}

package poolaudit

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestAMemberThatDoesNotReportIsMissed(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	if f := r.Figures(r.now.Add(3 * time.Second)); f.Verdict != audit.NoTraffic {
		t.Errorf("verdict %v of members that just joined, want NoTraffic", f.Verdict)
	}
	r.seconds(3, nil)
	silent := r.members[1]
	r.members = r.members[:1]
	if f := r.seconds(4, nil); f.Verdict != audit.Measured {
		t.Errorf("verdict %v, want patience", f.Verdict)
	}
	if f := r.seconds(1, nil); f.Verdict != audit.ReportsMissing {
		t.Errorf("verdict %v, want ReportsMissing", f.Verdict)
	}
	r.Leave(silent)
	if f := r.Figures(r.now); f.Verdict != audit.Measured || f.InFlight != 5 {
		t.Errorf("figures = %+v, want nothing of one that left", f)
	}
	r.Leave(r.members[0])
	if f := r.Figures(r.now); f.Limit != 0 || f.Holders != 0 {
		t.Errorf("figures = %+v, want no limit that nobody reports", f)
	}
}

func TestRatesOfAPool(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	for _, h := range r.members {
		r.said[h].Admitted, r.said[h].Refused = 1_000_000, 1_000_000 // before this audit
	}
	f := r.seconds(30, func(i int, said *Report) {
		said.Refused += 2
		said.Partitions = []PartitionReport{{Name: "live", Guaranteed: 4, InFlight: 3, Refused: said.Refused}}
	})
	if f.AdmittedPerSecond < 19 || f.AdmittedPerSecond > 22 || f.RejectedPerSecond < 3.8 || f.RejectedPerSecond > 4.4 {
		t.Errorf("%v admitted and %v refused a second, want 20 and 4", f.AdmittedPerSecond, f.RejectedPerSecond)
	}
	if !f.Saturated {
		t.Error("not saturated while requests are refused")
	}
	if f.Generation != 1 || f.Holders != 2 {
		t.Errorf("%d holders of generation %d, want 2 of 1", f.Holders, f.Generation)
	}
	if p := f.Partitions[0]; p.Name != "live" || p.Guaranteed != 8 || p.InFlight != 6 || p.RejectedPerSecond < 3.8 || p.RejectedPerSecond > 4.4 {
		t.Errorf("partition = %+v, want 8 slots, 6 in flight and 4 refused a second", p)
	}
	if f = r.seconds(10, nil); f.Saturated {
		t.Error("saturated ten seconds after the last refusal")
	}
	if f = r.seconds(1, func(_ int, said *Report) { said.Queued = 1 }); !f.Saturated || f.Queued != 2 {
		t.Errorf("figures = %+v, want two that wait", f)
	}
}

func TestLatencyOfAPoolIsTheMedian(t *testing.T) {
	r := newReporting(4, Config{Generation: 1})
	f := r.seconds(1, func(i int, said *Report) {
		said.Baseline, said.Latency = limiter.Micros(10*i), limiter.Micros(100*i)
		said.Quarantined = limiter.Micros(i)
		said.Fenced = i == 3
	})
	if f.Baseline != 20 || f.Latency != 200 || f.Measuring != 3 || f.Quarantined != 3 || f.CutOff != 1 {
		t.Errorf("figures = %+v, want medians over those that measured", f)
	}
	// A holder that is fenced or unanswered reports an old limit.
	f = r.seconds(1, func(i int, said *Report) {
		said.Limit, said.Fenced, said.CoordinatorError = int64(10+i), i == 3, map[int]string{2: "no route"}[i]
	})
	if f.Limit != 11 {
		t.Errorf("limit = %d, want the last that is from now", f.Limit)
	}
}

// Figures are of a generation when all holders reported it, with the limit that their
// coordinator answered under it.
func TestFiguresWaitUntilAllHoldersReportAGeneration(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	r.seconds(2, nil)
	r.Reconfigure(Config{Generation: 2, Bounded: true}, r.now)
	if f := r.Figures(r.now); !f.Pending || f.Limit != 0 || f.Verdict != audit.Starting {
		t.Errorf("at once: figures = %+v, want none", f)
	}
	if f := r.seconds(1, nil); !f.Pending || f.Limit != 0 {
		t.Errorf("of the generation before: figures = %+v, want none", f)
	}
	first := func(limit int64) func(int, *Report) {
		return func(i int, said *Report) {
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
	if f := r.seconds(1, func(_ int, said *Report) { said.Generation, said.Limit = 2, 7 }); f.Pending || f.Limit != 7 || f.Verdict != audit.Measured {
		t.Errorf("of both: figures = %+v, want them measured", f)
	}
	*r.said[r.members[1]] = other
	r.Reconfigure(Config{Generation: 3, Bounded: true}, r.now)
	if f := r.seconds(silentAfter+1, func(i int, said *Report) { said.Generation = 3 - int64(i) }); f.Pending {
		t.Errorf("later: figures = %+v, want not to wait for one that does not report it", f)
	}
}

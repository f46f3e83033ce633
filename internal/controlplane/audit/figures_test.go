package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestFlowOfALimit(t *testing.T) {
	f := newFleet(false, 100, "a")
	for i := range int64(31) {
		f.Report(holder("a"), Report{Totals: Totals{Admitted: 90 * i, Refused: 10 * i, RoundTrips: 4 * i}, ActiveKeys: 3}, f.now)
		f.now = f.now.Add(time.Second)
	}
	got := f.Figures(f.now)
	want := meter.Flow{AdmittedPerSecond: 90, RejectedPerSecond: 10, RequestsPerRoundTrip: 25}
	if diff := cmp.Diff(want, got.Flow, cmpopts.EquateApprox(0.1, 0)); diff != "" {
		t.Errorf("flow (-want +got):\n%s", diff)
	}
	if got.ActiveKeys != 3 || got.Generation != 1 {
		t.Errorf("%d active keys of generation %d, want 3 of 1", got.ActiveKeys, got.Generation)
	}
}

func TestFigures(t *testing.T) {
	testLimit(t, map[string]limitCase{
		"the counts of all holders are summed": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				f.report("b", final(0, 55, 7))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second), Observed: 15, Worst: 15, WorstEnd: noon.Add(time.Second)},
			wantUnused:  &UnderUtilization{},
		},
		"refused demand that the budget would have held is unused": {
			run: func(f *fleet) {
				f.report("a", final(0, 30, 500))
				f.report("b", final(0, 40, 0))
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second)},
			wantUnused:  &UnderUtilization{Observed: 3000, Worst: 3000},
		},
		"less demand than the limit leaves nothing unused": {
			run: func(f *fleet) {
				f.report("a", final(0, 30, 0))
				f.report("b", final(0, 10, 0))
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second)},
			wantUnused:  &UnderUtilization{},
		},
		"local shares widen the bound": {
			run: func(f *fleet) {
				f.report("a", Row{Windows: at(0, 100), Final: true, Admitted: 100})
				f.report("b", Row{Windows: at(0, 100), Final: true, Admitted: 50, Local: 50, LocalShare: 50})
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second), Observed: 50, Bound: 50, Worst: 50, WorstEnd: noon.Add(time.Second)},
			wantUnused:  &UnderUtilization{},
		},
		"admitting without a share is failing open": {
			run: func(f *fleet) {
				f.report("a", Row{Windows: at(0, 100), Final: true, Admitted: 300, Local: 300})
				f.report("b", final(0, 0, 0))
				f.pass("a", "b")
			},
			wantVerdict: FailOpen,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second), Observed: 200, Unbounded: true, Worst: 200, WorstEnd: noon.Add(time.Second), WorstUnbounded: true},
			wantUnused:  &UnderUtilization{},
		},
		"nobody reported a request": {
			run:         func(f *fleet) { f.pass("a", "b") },
			wantVerdict: NoTraffic,
		},
	})
}

// A refusal by one rate leaves the budget of the others unused; that is not the limit's
// under-utilization.
func TestUnderUtilizationIsThatOfTheRateUsedBest(t *testing.T) {
	rates := []limiter.Rate{{Limit: 10, Window: limiter.Second}, {Limit: 15, Window: 2 * limiter.Second}}
	now := noon.Add(-time.Minute)
	l := New(time.Second, Config{Generation: 1, Promise: Promise{Rates: rates}}, now)
	l.Join(holder("a"), now)
	l.Pass(holder("a"), now)
	row := func(i, admitted, refused int64) Row {
		w := limiter.Windows{N: 2}
		w.Open[0] = limiter.OpenWindow{Rate: rates[0], Index: noon.Unix() + i}
		w.Open[1] = limiter.OpenWindow{Rate: rates[1], Index: (noon.Unix() + i) / 2}
		return Row{Windows: w, Final: true, Admitted: admitted, Refused: refused}
	}
	l.Report(holder("a"), Report{Generation: 1, Rows: []Row{row(0, 10, 20)}}, noon.Add(time.Second))
	l.Report(holder("a"), Report{Generation: 1, Rows: []Row{row(1, 5, 25)}}, noon.Add(2*time.Second))
	l.Advance(noon.Add(3 * time.Second))
	got := l.Figures(noon.Add(3 * time.Second))
	if diff := cmp.Diff(&UnderUtilization{}, got.UnderUtilization); diff != "" {
		t.Errorf("under-utilization (-want +got):\n%s", diff)
	}
	if got.Overshoot == nil || got.Overshoot.Observed != 0 {
		t.Errorf("overshoot = %+v, want 0", got.Overshoot)
	}
}

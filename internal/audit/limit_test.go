package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/pkg/limiter"
)

// noon is an instant at which windows of any length in these tests begin.
var noon = time.Unix(1_800_000_000, 0)

// A fleet drives a Limit through time as the coordinator does.
type fleet struct {
	*Limit
	now     time.Time
	queries []Query
}

func newFleet(keyed bool, limit int64, members ...string) *fleet {
	f := &fleet{now: noon.Add(-time.Minute)}
	f.Limit = New(time.Second, Config{Generation: 1, Promise: Promise{Rates: []limiter.Rate{{Limit: limit, Window: limiter.Second}}}, Keyed: keyed}, f.now)
	for _, name := range members {
		f.Join(holder(name), f.now)
	}
	f.now = noon.Add(-3 * time.Second)
	for range 3 {
		f.pass(members...)
	}
	return f
}

func holder(name string) Holder { return Holder{PodUID: name, Nonce: "1"} }

// at is the window that begins i seconds after noon.
func at(i int64, limit int64) limiter.Windows {
	w := limiter.Windows{N: 1}
	w.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: limit, Window: limiter.Second}, Index: noon.Unix() + i}
	return w
}

// report sends rows of one holder in a round of their own.
func (f *fleet) report(name string, rows ...Row) {
	f.Report(holder(name), Report{Generation: f.generation, Rows: rows}, f.now)
}

// pass lets a second go by in which every member named reports nothing new.
func (f *fleet) pass(names ...string) {
	f.now = f.now.Add(time.Second)
	for _, name := range names {
		f.Report(holder(name), Report{Generation: f.generation}, f.now)
	}
	f.queries = append(f.queries, f.Advance(f.now)...)
}

// final is a row of the i-th second that is over, open of one that is not.
func final(i, admitted, refused int64) Row {
	return Row{Windows: at(i, 100), Final: true, Admitted: admitted, Refused: refused}
}

func open(i, admitted int64) Row { return Row{Windows: at(i, 100), Admitted: admitted} }

func TestLimit(t *testing.T) {
	secondAfterNoon := noon.Add(time.Second)

	tests := map[string]struct {
		run         func(f *fleet)
		wantVerdict Verdict
		want        *Overshoot
		wantUnused  *UnderUtilization
	}{
		"the counts of all holders are summed": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				f.report("b", final(0, 55, 7))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: secondAfterNoon, Observed: 15, Worst: 15, WorstEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"a row that is sent again replaces the one before": {
			run: func(f *fleet) {
				f.report("a", open(0, 40))
				f.report("a", final(0, 60, 0))
				f.report("a", final(0, 60, 0))
				f.report("b", final(0, 40, 0))
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"refused demand that the budget would have held is unused": {
			run: func(f *fleet) {
				f.report("a", final(0, 30, 500))
				f.report("b", final(0, 40, 0))
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{Observed: 3000, Worst: 3000},
		},
		"less demand than the limit leaves nothing unused": {
			run: func(f *fleet) {
				f.report("a", final(0, 30, 0))
				f.report("b", final(0, 10, 0))
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"a window is not measured before every holder has accounted for it": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				f.pass("a", "b")
			},
			wantVerdict: Starting,
		},
		"a holder with nothing to say accounts by two rounds of silence": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				f.pass("a", "b")
				f.pass("a", "b")
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"several reports of one round are one": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				f.Advance(f.now)
				for range 5 {
					f.Pass(holder("b"), f.now)
				}
				f.Advance(f.now)
			},
			wantVerdict: Starting,
		},
		"an open row keeps the window waiting": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				f.report("b", open(0, 70))
				for range 4 {
					f.pass("a", "b")
				}
			},
			wantVerdict: Starting,
		},
		"a holder that never closes its row is given up, and what it admitted counts": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				f.report("b", open(0, 70))
				for range 13 {
					f.pass("a", "b")
				}
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{Worst: 30, WorstEnd: secondAfterNoon, AtLeast: true},
		},
		"a holder that vanished leaves its window unknown": {
			run: func(f *fleet) {
				f.report("a", open(0, 10))
				f.report("b", open(0, 10))
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: ReportsMissing,
		},
		"a window that nobody spoke of when a holder vanished is unknown too": {
			run: func(f *fleet) {
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: ReportsMissing,
		},
		"windows after a holder vanished are measured": {
			run: func(f *fleet) {
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				for range 5 {
					f.pass("a")
				}
				f.report("a", final(5, 120, 0))
				f.pass("a")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: noon.Add(6 * time.Second), Observed: 20, Worst: 20, WorstEnd: noon.Add(6 * time.Second), AtLeast: true},
			wantUnused:  &UnderUtilization{},
		},
		"a holder that vanished after it accounted for a window leaves it known": {
			run: func(f *fleet) {
				f.report("b", final(0, 50, 0))
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: secondAfterNoon, AtLeast: true},
			wantUnused:  &UnderUtilization{},
		},
		"a holder that comes back accounts for what it left unknown": {
			run: func(f *fleet) {
				f.report("b", open(0, 50))
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
				f.Join(holder("b"), f.now)
				f.report("b", final(0, 90, 0))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: secondAfterNoon, Observed: 10, Worst: 10, WorstEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"a holder that comes back has accounted for nothing yet": {
			run: func(f *fleet) {
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
				f.Join(holder("b"), f.now)
				f.Advance(f.now)
			},
			wantVerdict: ReportsMissing,
		},
		"what a holder resends after a break may be from before another vanished": {
			run: func(f *fleet) {
				f.Lose(holder("b"), f.now)
				f.Lose(holder("a"), f.now)
				f.now = f.now.Add(10 * time.Second)
				f.Join(holder("a"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: Starting,
		},
		"a row that comes late opens the question again": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				for range 4 {
					f.pass("a", "b")
				}
				f.report("b", final(0, 70, 0))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: secondAfterNoon, Observed: 30, Worst: 30, WorstEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"an open row does not replace a final one that overtook it": {
			run: func(f *fleet) {
				f.report("a", final(0, 120, 0))
				f.report("a", open(0, 50))
				f.report("b", final(0, 0, 0))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: secondAfterNoon, Observed: 20, Worst: 20, WorstEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"a holder that leaves in good order has said all": {
			run: func(f *fleet) {
				f.report("b", open(0, 90))
				f.Leave(holder("b"))
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: secondAfterNoon, Observed: 10, Worst: 10, WorstEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"a holder's last word does not end the window of the others": {
			run: func(f *fleet) {
				f.report("b", final(0, 90, 0))
				f.Leave(holder("b"))
				f.Advance(f.now)
				f.Pass(holder("a"), f.now.Add(501*time.Millisecond))
				f.Pass(holder("a"), f.now.Add(999*time.Millisecond))
				f.Pass(holder("a"), f.now.Add(1002*time.Millisecond))
				f.Advance(f.now.Add(999 * time.Millisecond))
			},
			wantVerdict: Starting,
		},
		"local shares widen the bound": {
			run: func(f *fleet) {
				f.report("a", Row{Windows: at(0, 100), Final: true, Admitted: 100})
				f.report("b", Row{Windows: at(0, 100), Final: true, Admitted: 50, Local: 50, LocalShare: 50})
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: secondAfterNoon, Observed: 50, Bound: 50, Worst: 50, WorstEnd: secondAfterNoon},
			wantUnused:  &UnderUtilization{},
		},
		"admitting without a share is failing open": {
			run: func(f *fleet) {
				f.report("a", Row{Windows: at(0, 100), Final: true, Admitted: 300, Local: 300})
				f.report("b", final(0, 0, 0))
				f.pass("a", "b")
			},
			wantVerdict: FailOpen,
			want:        &Overshoot{WindowEnd: secondAfterNoon, Observed: 200, Unbounded: true, Worst: 200, WorstEnd: secondAfterNoon, WorstUnbounded: true},
			wantUnused:  &UnderUtilization{},
		},
		"while an edit spreads the larger limit holds and nothing is measured of the new one": {
			run: func(f *fleet) {
				f.report("a", open(0, 10))
				f.report("b", open(0, 10))
				f.Reconfigure(Config{Generation: 2, Promise: Promise{Rates: []limiter.Rate{{Limit: 50, Window: limiter.Second}}}}, f.now)
				f.report("a", final(0, 60, 9))
				f.report("b", final(0, 40, 9))
				f.pass("a", "b")
			},
			wantVerdict: Starting,
		},
		"figures of the generation before are not those of the next": {
			run: func(f *fleet) {
				f.report("a", final(0, 90, 0))
				f.report("b", final(0, 5, 20))
				f.pass("a", "b")
				f.Reconfigure(Config{Generation: 2, Promise: Promise{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}}, f.now)
				f.pass("a", "b")
			},
			wantVerdict: Starting,
		},
		"a window that closed before the generation and is measured in it is not its own": {
			run: func(f *fleet) {
				f.report("a", final(0, 90, 0))
				f.Reconfigure(Config{Generation: 2, Promise: Promise{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}}, f.now)
				f.report("b", final(0, 5, 20))
				f.pass("a", "b")
			},
			wantVerdict: Starting,
		},
		"what breaks the bound while an edit spreads is told": {
			run: func(f *fleet) {
				f.report("a", open(0, 10))
				f.Reconfigure(Config{Generation: 2, Promise: Promise{Rates: []limiter.Rate{{Limit: 50, Window: limiter.Second}}}}, f.now)
				f.report("a", final(0, 130, 0))
				f.report("b", final(0, 0, 0))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{Worst: 30, WorstEnd: secondAfterNoon},
		},
		"the first window of a generation is measured": {
			run: func(f *fleet) {
				f.report("a", final(0, 90, 0))
				f.report("b", final(0, 5, 20))
				f.pass("a", "b")
				f.Reconfigure(Config{Generation: 2, Promise: Promise{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}}, f.now)
				for range 5 {
					f.pass("a", "b")
				}
				f.report("a", final(6, 70, 0))
				f.report("b", final(6, 20, 20))
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: noon.Add(7 * time.Second)},
			wantUnused:  &UnderUtilization{Observed: 1000, Worst: 1000},
		},
		"after an edit the new limit holds, whatever rows say": {
			run: func(f *fleet) {
				f.Reconfigure(Config{Generation: 2, Promise: Promise{Rates: []limiter.Rate{{Limit: 50, Window: limiter.Second}}}}, f.now)
				for range 5 {
					f.pass("a", "b")
				}
				f.report("a", final(5, 60, 0))
				f.report("b", final(5, 0, 0))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: noon.Add(6 * time.Second), Observed: 10, Worst: 10, WorstEnd: noon.Add(6 * time.Second)},
			wantUnused:  &UnderUtilization{},
		},
		"nobody reported a request": {
			run:         func(f *fleet) { f.pass("a", "b") },
			wantVerdict: NoTraffic,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFleet(false, 100, "a", "b")
			tc.run(f)
			got := f.Figures(f.now)
			if got.Verdict != tc.wantVerdict {
				t.Errorf("verdict = %v, want %v", got.Verdict, tc.wantVerdict)
			}
			if tc.wantVerdict == Exceeded {
				tc.want.Excess = tc.want.Worst - tc.want.Bound
			}
			if diff := cmp.Diff(tc.want, got.Overshoot, cmpopts.EquateApproxTime(0)); diff != "" {
				t.Errorf("overshoot (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUnused, got.UnderUtilization); diff != "" {
				t.Errorf("under-utilization (-want +got):\n%s", diff)
			}
		})
	}
}

// What one rate refuses leaves the budget of the others unused; that is not the
// limit's under-utilization.
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

func TestWindowsBeforeEveryHolderIsKnownAreNotMeasured(t *testing.T) {
	l := New(time.Second, Config{Generation: 1, Promise: Promise{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}}, noon.Add(10*time.Second))
	l.Join(holder("a"), noon)
	report := func(i, admitted int64) {
		now := noon.Add(time.Duration(i) * time.Second)
		row := Row{Windows: at(i, 100), Final: true, Admitted: admitted}
		l.Report(holder("a"), Report{Generation: 1, Totals: Totals{Admitted: admitted}, Rows: []Row{row}}, now)
		l.Advance(now)
	}
	report(2, 60)
	if got := l.Figures(noon); got.Verdict != Starting || got.Overshoot != nil {
		t.Errorf("figures = %+v, want none", got)
	}
	report(3, 130)
	if got := l.Figures(noon); got.Verdict != Exceeded || got.Overshoot == nil || got.Overshoot.Worst != 30 {
		t.Errorf("figures = %+v, want an overshoot of at least 30", got)
	}
}

// TestWhatIsInNoWindowLeavesAllThatWereOpenUnknown: a holder that never reached
// its store may admit requests without knowing in which window.
func TestWhatIsInNoWindowLeavesAllThatWereOpenUnknown(t *testing.T) {
	f := newFleet(false, 100, "a", "blind")
	var unplaced int64
	round := func(i, more int64) Verdict {
		unplaced += more
		f.report("a", Row{Windows: at(i, 100), Final: true, Admitted: 60})
		f.Report(holder("blind"), Report{Generation: 1, Totals: Totals{Admitted: unplaced, Unplaced: unplaced}}, f.now)
		f.pass("a")
		f.Report(holder("blind"), Report{Generation: 1, Totals: Totals{Admitted: unplaced, Unplaced: unplaced}}, f.now)
		f.pass("a")
		f.Report(holder("blind"), Report{Generation: 1, Totals: Totals{Admitted: unplaced, Unplaced: unplaced}}, f.now)
		f.pass("a")
		return f.Figures(f.now).Verdict
	}
	if got := round(0, 0); got != Measured {
		t.Fatalf("verdict = %v before, want Measured", got)
	}
	for i := range int64(3) {
		if got := round(3*i+3, 50); got != ReportsMissing {
			t.Errorf("verdict = %v, want ReportsMissing", got)
		}
	}
	for i := range int64(3) {
		round(3*i+12, 0)
	}
	if got := round(21, 0); got != Measured {
		t.Errorf("verdict = %v long after, want Measured", got)
	}
}

// TestTheShortestWindowsAreMeasured: many of them end before the first one of them
// is accounted for by everybody.
func TestTheShortestWindowsAreMeasured(t *testing.T) {
	for name, keyed := range map[string]bool{"without a key": false, "with a key": true} {
		t.Run(name, func(t *testing.T) {
			const tenth = limiter.Second / 10
			now := noon.Add(-time.Minute)
			l := New(time.Second, Config{Generation: 1, Promise: Promise{Rates: []limiter.Rate{{Limit: 100, Window: tenth}}}, Keyed: keyed}, now)
			l.Join(holder("busy"), now)
			l.Join(holder("silent"), now)
			for second := range int64(20) {
				now = noon.Add(time.Duration(second) * time.Second)
				var rows []Row
				for i := range int64(20) { // those of the last second are still open
					w := limiter.Windows{N: 1}
					w.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 100, Window: tenth}, Index: (noon.Unix()+second-2)*10 + i}
					rows = append(rows, Row{Windows: w, Final: i < 10, Admitted: 5, Unlisted: [limiter.MaxRates]int64{5}})
				}
				l.Report(holder("busy"), Report{Generation: 1, Rows: rows}, now)
				l.Report(holder("silent"), Report{Generation: 1}, now)
				l.Advance(now)
				l.Advance(now.Add(time.Second / 2))
			}
			if got := l.Figures(now).Verdict; got != Measured {
				t.Errorf("verdict = %v, want Measured", got)
			}
		})
	}
}

func TestMemoryIsBoundedWhateverHoldersInvent(t *testing.T) {
	l := New(time.Second, Config{Generation: 1, Promise: Promise{Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}, {Limit: 1, Window: limiter.MaxWindow}}}}, noon)
	l.Join(holder("a"), noon)
	for i := range int64(3000) {
		w := limiter.Windows{N: 2}
		w.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 1, Window: limiter.Second}, Index: i * 7}
		w.Open[1] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 1, Window: limiter.MaxWindow}, Index: i}
		l.Report(holder("a"), Report{Rows: []Row{{Windows: w, Admitted: 1}}}, noon)
		l.Lose(Holder{PodUID: "b", Nonce: string(rune(i))}, noon)
		l.Join(Holder{PodUID: "b", Nonce: string(rune(i + 1))}, noon)
	}
	l.Advance(noon)
	if len(l.rows) > retainedTuples || len(l.windows) > maxWindows || len(l.losses) > maxLosses+1 {
		t.Errorf("%d tuples, %d windows, %d losses are held", len(l.rows), len(l.windows), len(l.losses))
	}
}

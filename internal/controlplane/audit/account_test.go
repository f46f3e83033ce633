package audit

import (
	"testing"
	"time"
)

// reportAll is a report of all rows that the holder counted, except those it forgot.
func reportAll(forgot int64, waiting bool, rows ...Row) Report {
	for _, row := range rows {
		forgot += row.Admitted + row.Refused
	}
	return Report{Generation: 1, Waiting: waiting, Rows: rows, Placed: &forgot}
}

// served has two holders account for a second; holder a forgot some counts.
func served(forgot int64) *fleet {
	f := newFleet(false, 100, "a", "b")
	f.Report(holder("a"), reportAll(0, false, open(0, 10)), f.now)
	f.Report(holder("b"), reportAll(0, false, open(0, 10)), f.now)
	f.now = f.now.Add(time.Second)
	f.Report(holder("a"), reportAll(forgot, false, final(0, 20, 0)), f.now)
	f.Report(holder("b"), reportAll(0, false, final(0, 20, 0)), f.now)
	f.Advance(f.now)
	return f
}

func TestWindowsThatAHolderForgotAreUnknown(t *testing.T) {
	if got := served(0).Figures(noon); got.Verdict != Measured || got.Overshoot.AtLeast {
		t.Errorf("figures = %+v, %+v; want all to be known", got, got.Overshoot)
	}
	for _, forgot := range []int64{7, -7} {
		if got := served(forgot).Figures(noon); got.Verdict != ReportsMissing || got.Overshoot != nil {
			t.Errorf("figures = %+v although %d are in no row", got, forgot)
		}
	}
}

// TestALaterLossTakesBackAMeasurement: it may have been admitted then.
func TestALaterLossTakesBackAMeasurement(t *testing.T) {
	f := served(0)
	f.now = f.now.Add(time.Second)
	f.Report(holder("a"), Report{Generation: 1, Placed: new(int64(21))}, f.now)
	if got := f.Figures(f.now); got.Verdict != ReportsMissing || got.Overshoot != nil {
		t.Errorf("figures = %+v, %+v; want them to be unknown", got, got.Overshoot)
	}
	for range 4 { // and all goes on as before
		f.now = f.now.Add(time.Second)
		f.Report(holder("a"), Report{Generation: 1, Placed: new(int64(21))}, f.now)
		f.Report(holder("b"), Report{Generation: 1, Placed: new(int64(20))}, f.now)
		f.Advance(f.now)
	}
	f.now = noon.Add(20 * time.Second)
	f.Report(holder("a"), Report{Generation: 1, Placed: new(int64(151)), Rows: []Row{final(20, 130, 0)}}, f.now)
	f.Report(holder("b"), Report{Generation: 1, Placed: new(int64(20))}, f.now)
	for range 4 {
		f.now = f.now.Add(time.Second)
		f.Report(holder("a"), Report{Generation: 1, Placed: new(int64(151))}, f.now)
		f.Report(holder("b"), Report{Generation: 1, Placed: new(int64(20))}, f.now)
		f.Advance(f.now)
	}
	if got := f.Figures(f.now); got.Verdict != Exceeded || got.Overshoot.Observed != 30 || !got.Overshoot.AtLeast {
		t.Errorf("figures = %+v, %+v; want a known window and a worst of at least that", got, got.Overshoot)
	}
}

// TestALossIsOfNoWindowBeforeTheLastAccount: by then all was in rows.
func TestALossIsOfNoWindowBeforeTheLastAccount(t *testing.T) {
	f := served(0)
	for range 20 {
		f.now = f.now.Add(time.Second)
		f.Report(holder("a"), Report{Generation: 1, Placed: new(int64(20))}, f.now)
		f.Report(holder("b"), Report{Generation: 1, Placed: new(int64(20))}, f.now)
		f.Advance(f.now)
	}
	f.Report(holder("a"), Report{Generation: 1, Placed: new(int64(21))}, f.now)
	if got := f.Figures(f.now); got.Verdict != Measured || !got.Overshoot.AtLeast {
		t.Errorf("figures = %+v, %+v; want the old window as it was measured", got, got.Overshoot)
	}
}

// TestARowThatIsFinalMayCountOnlyTheEnd of a window while others wait.
func TestARowThatIsFinalMayCountOnlyTheEnd(t *testing.T) {
	f := newFleet(false, 100, "a", "b")
	f.Report(holder("a"), reportAll(0, false, final(0, 20, 0)), f.now)
	for _, waiting := range []bool{true, false} {
		f.Report(holder("b"), reportAll(0, waiting, final(0, 20, 0)), f.now)
		f.Advance(f.now)
		if got := f.Figures(f.now).Verdict == Measured; got == waiting {
			t.Errorf("rows wait: %v, but measured: %v", waiting, got)
		}
	}
}

// TestSilenceWhileRowsWaitAccountsForNothing: the window may be among them.
func TestSilenceWhileRowsWaitAccountsForNothing(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		f := newFleet(false, 100, "a", "b")
		f.pass("a", "b")
		f.Report(holder("a"), reportAll(0, false, final(0, 20, 0)), f.now)
		for range 4 {
			f.now = f.now.Add(time.Second)
			f.Report(holder("a"), Report{Generation: 1}, f.now)
			f.Report(holder("b"), Report{Generation: 1, Waiting: waiting}, f.now)
			f.Advance(f.now)
		}
		if got := f.Figures(f.now).Verdict == Measured; got == waiting {
			t.Errorf("rows wait: %v, but measured: %v", waiting, got)
		}
	}
}

// TestAHolderThatVanishedMayAdmitMore until it accounted for that, or its pod is gone.
func TestAHolderThatVanishedMayAdmitMore(t *testing.T) {
	atLeast := func(f *fleet) bool {
		o := f.Figures(f.now).Overshoot
		return o == nil || o.AtLeast
	}
	f := served(0)
	f.now = f.now.Add(5 * time.Second)
	f.Report(holder("b"), reportAll(0, false, final(0, 20, 0)), f.now)
	f.Lose(holder("b"), f.now)
	if !atLeast(f) {
		t.Error("all is known although a holder vanished")
	}
	f.Join(holder("b"), f.now)
	if got := f.Figures(f.now); got.Verdict != ReportsMissing || got.Overshoot != nil {
		t.Errorf("figures = %+v before the holder accounted for its absence", got)
	}
	f.Report(holder("b"), reportAll(0, false, final(0, 20, 0)), f.now)
	f.Advance(f.now)
	if atLeast(f) {
		t.Error("something is unknown although the holder came back and did nothing")
	}
	f.Lose(holder("b"), f.now)
	f.Join(NewHolder("b", "2"), f.now)
	if !atLeast(f) {
		t.Error("all is known of the process that another one followed")
	}
	f.Reconfigure(Config{Generation: 2, Promise: f.promised.Promise}, f.now)
	if f.partial(f.figures[windowsOf(f.promised.Promise.Rates[0])]) {
		t.Error("the generation after does not know all of its own")
	}
	f.Lose(holder("a"), f.now)
	f.Bury("a", f.now)
	f.Reconfigure(Config{Generation: 3, Promise: f.promised.Promise}, f.now)
	if f.partial(f.figures[windowsOf(f.promised.Promise.Rates[0])]) {
		t.Error("a pod that is gone is still waited for")
	}
}

// TestARowThatComesTooLateStillProvesAnExcess by what it counts itself.
func TestARowThatComesTooLateStillProvesAnExcess(t *testing.T) {
	for name, tc := range map[string]struct {
		keyed bool
		late  Row
		want  int64
	}{
		"without a key":        {false, final(0, 130, 0), 30},
		"with a key":           {true, Row{Windows: final(0, 0, 0).Windows, Final: true, Admitted: 130, Keys: []KeyCount{{"x", 120, 0}, {"y", 10, 0}}}, 20},
		"within the limit":     {false, final(0, 90, 0), 0},
		"under a larger limit": {false, Row{Windows: at(0, 150), Final: true, Admitted: 130}, 0},
		"admitted by a share":  {false, Row{Windows: final(0, 0, 0).Windows, Final: true, Admitted: 130, Local: 50, LocalShare: 50}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(tc.keyed, 100, "a", "b")
			for i := range int64(60) {
				f.now = f.now.Add(time.Second)
				f.report("a", final(i, 1, 0))
			}
			f.Report(holder("b"), Report{Generation: 1, Rows: []Row{tc.late}}, f.now)
			got := f.Figures(f.now)
			if (got.Verdict == Exceeded) != (tc.want > tc.late.LocalShare) {
				t.Errorf("verdict = %v", got.Verdict)
			}
			if worst := f.figures[windowsOf(f.promised.Promise.Rates[0])].worst; worst != tc.want {
				t.Errorf("worst = %d, want %d", worst, tc.want)
			}
		})
	}
}

// TestARowThatComesTooLateSaysNothingOfALaterGeneration than that of its windows.
func TestARowThatComesTooLateSaysNothingOfALaterGeneration(t *testing.T) {
	f := newFleet(false, 100, "a", "b")
	for i := range int64(60) {
		f.now = f.now.Add(time.Second)
		f.report("a", final(i, 1, 0))
	}
	f.Reconfigure(Config{Generation: 2, Promise: f.promised.Promise}, f.now)
	f.Report(holder("b"), Report{Generation: 2, Rows: []Row{final(0, 130, 0)}}, f.now)
	if got := f.Figures(f.now); got.Verdict == Exceeded {
		t.Errorf("figures = %+v, %+v; want nothing of the generation before", got, got.Overshoot)
	}
}

// TestAWindowIsAsOldAsARowOfItSays, so one that another holder never used is measured when
// the one that did comes back.
func TestAWindowIsAsOldAsARowOfItSays(t *testing.T) {
	for _, tc := range []struct {
		age  time.Duration
		want bool
	}{{0, false}, {10 * time.Second, true}, {40 * time.Second, false}} {
		f := newFleet(false, 100, "a")
		f.Lose(holder("a"), f.now)
		f.Reconfigure(Config{Generation: 2, Promise: f.promised.Promise}, f.now)
		f.now = f.now.Add(30 * time.Second)
		f.Join(holder("a"), f.now)
		row := final(5, 120, 0)
		row.Age = tc.age
		f.Report(holder("a"), Report{Generation: 2, Rows: []Row{row}}, f.now)
		f.Advance(f.now)
		if got := f.Figures(f.now).UnderUtilization != nil; got != tc.want {
			t.Errorf("of age %s: measured %v, want %v", tc.age, got, tc.want)
		}
	}
}

// TestUnitsOfNoWindowLeaveAllOpenWindowsUnknown: a holder that never reached
// its store may admit requests without knowing in which window.
func TestUnitsOfNoWindowLeaveAllOpenWindowsUnknown(t *testing.T) {
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

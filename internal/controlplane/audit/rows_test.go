package audit

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestRows(t *testing.T) {
	testLimit(t, map[string]limitCase{
		"a row that is sent again replaces the one before": {
			run: func(f *fleet) {
				f.report("a", open(0, 40))
				f.report("a", final(0, 60, 0))
				f.report("a", final(0, 60, 0))
				f.report("b", final(0, 40, 0))
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second)},
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
			want:        &Overshoot{WindowEnd: noon.Add(time.Second)},
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
			want:        &Overshoot{WindowEnd: noon.Add(time.Second), Observed: 30, Worst: 30, WorstEnd: noon.Add(time.Second)},
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
			want:        &Overshoot{WindowEnd: noon.Add(time.Second), Observed: 20, Worst: 20, WorstEnd: noon.Add(time.Second)},
			wantUnused:  &UnderUtilization{},
		},
	})
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
		l.Lose(NewHolder("b", string(rune(i))), noon)
		l.Join(NewHolder("b", string(rune(i+1))), noon)
	}
	l.Advance(noon)
	if len(l.rows) > retainedTuples || len(l.windows) > maxWindows || len(l.losses) > maxLosses+1 {
		t.Errorf("%d tuples, %d windows, %d losses are held", len(l.rows), len(l.windows), len(l.losses))
	}
}

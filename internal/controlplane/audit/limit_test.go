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

func holder(name string) Holder { return NewHolder(name, "1") }

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

// A limitCase is a story of a limit of 100 a second that a and b enforce, and its figures
// in the end.
type limitCase struct {
	run         func(f *fleet)
	wantVerdict Verdict
	want        *Overshoot
	wantUnused  *UnderUtilization
}

func testLimit(t *testing.T, tests map[string]limitCase) {
	t.Helper()
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

func TestGenerations(t *testing.T) {
	testLimit(t, map[string]limitCase{
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
		"an excess while an edit spreads is reported": {
			run: func(f *fleet) {
				f.report("a", open(0, 10))
				f.Reconfigure(Config{Generation: 2, Promise: Promise{Rates: []limiter.Rate{{Limit: 50, Window: limiter.Second}}}}, f.now)
				f.report("a", final(0, 130, 0))
				f.report("b", final(0, 0, 0))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{Worst: 30, WorstEnd: noon.Add(time.Second)},
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
		"a promise that is edited by itself, as that of a budget, is another generation": {
			run: func(f *fleet) {
				f.Reconfigure(Config{Generation: 1, Promise: Promise{Rates: []limiter.Rate{{Limit: 150, Window: limiter.Second}}}}, f.now)
				for range 5 {
					f.pass("a", "b")
				}
				f.report("a", final(6, 130, 0))
				f.report("b", final(6, 20, 0))
				f.pass("a", "b")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: noon.Add(7 * time.Second)},
			wantUnused:  &UnderUtilization{},
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
	})
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

// TestAnOlderWindowThatStaysUnknownHidesNoneThatIsKnown and was measured before it.
func TestAnOlderWindowThatStaysUnknownHidesNoneThatIsKnown(t *testing.T) {
	f := newFleet(false, 100, "a", "b")
	f.report("a", final(0, 60, 0), final(1, 60, 0))
	f.report("b", open(0, 5), final(1, 5, 0))
	for range 20 {
		f.pass("a", "b")
	}
	got := f.Figures(f.now)
	if got.Verdict != Measured || !got.Overshoot.WindowEnd.Equal(noon.Add(2*time.Second)) || !got.Overshoot.AtLeast {
		t.Errorf("figures = %+v, %+v; want the later window", got, got.Overshoot)
	}
}

// TestWhatIsAnotherPromise of the same generation.
func TestWhatIsAnotherPromise(t *testing.T) {
	of := func(limit int64) Promise {
		return Promise{Rates: []limiter.Rate{{Limit: limit, Window: limiter.Second}}}
	}
	promised := func(change func(*Config)) *Config {
		c := &Config{Generation: 1, Promise: of(100), Keyed: true, Clusters: 2, Overrides: map[string]Promise{"x": of(500)}}
		change(c)
		return c
	}
	same := promised(func(*Config) {})
	for name, tc := range map[string]struct {
		other *Config
		want  bool
	}{
		"none":                 {promised(func(*Config) {}), true},
		"another limit":        {promised(func(c *Config) { c.Promise = of(101) }), false},
		"no key":               {promised(func(c *Config) { c.Keyed = false }), false},
		"more clusters":        {promised(func(c *Config) { c.Clusters = 3 }), false},
		"another override":     {promised(func(c *Config) { c.Overrides["x"] = of(501) }), false},
		"an override less":     {promised(func(c *Config) { c.Overrides = nil }), false},
		"another carried unit": {promised(func(c *Config) { c.Carry = 1 }), true},
	} {
		if got := same.promisesAs(tc.other); got != tc.want {
			t.Errorf("%s: the same is %v", name, got)
		}
	}
}

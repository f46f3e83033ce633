package audit

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// newFleetOf is newFleet with a promise of its own.
func newFleetOf(c Config, members ...string) *fleet {
	f := &fleet{now: noon.Add(-time.Minute)}
	f.Limit = New(time.Second, c, f.now)
	for _, name := range members {
		f.Join(holder(name), f.now)
	}
	f.now = noon.Add(-3 * time.Second)
	for range 3 {
		f.pass(members...)
	}
	return f
}

// perSecond is a promise of that many units a second, and of most in a window.
func perSecond(limit, most int64) Promise {
	return Promise{Rates: []limiter.Rate{{Limit: limit, Window: limiter.Second}}, Most: []int64{most}}
}

// account enters final rows of the window that begins at noon and lets everybody
// account for it.
func (f *fleet) account(rows map[string]Row) Figures {
	var all []string
	for h := range f.members {
		all = append(all, h.PodUID())
	}
	for name, row := range rows {
		row.Final = true
		if row.Windows.N == 0 {
			row.Windows = at(0, f.promised.Promise.Rates[0].Limit)
		}
		f.report(name, row)
	}
	for range 3 {
		f.pass(all...)
	}
	return f.Figures(f.now)
}

func of(admitted, refused int64) Row { return Row{Admitted: admitted, Refused: refused} }

func named(counts ...KeyCount) Row {
	r := Row{Keys: counts}
	for _, c := range counts {
		r.Admitted += c.Admitted
		r.Refused += c.Refused
	}
	return r
}

func TestPromises(t *testing.T) {
	plain := perSecond(100, 100)
	bucket := perSecond(100, 150)
	overridden := Config{Generation: 1, Promise: plain, Keyed: true, Overrides: map[string]Promise{
		"big": perSecond(300, 300), "small": perSecond(10, 10), "bursty": perSecond(10, 40),
	}}
	tests := map[string]struct {
		config      Config
		rows        map[string]Row // by holder
		wantVerdict Verdict
		want        Overshoot // but for the instants
		wantUnused  int32
	}{
		"a bucket admits its burst on top of what flows in": {
			config: Config{Generation: 1, Promise: bucket}, rows: map[string]Row{"a": of(90, 0), "b": of(60, 9)},
			wantVerdict: Measured,
		},
		"and not one more": {
			config: Config{Generation: 1, Promise: bucket}, rows: map[string]Row{"a": of(90, 0), "b": of(61, 0)},
			wantVerdict: Exceeded, want: Overshoot{Observed: 1, Worst: 1},
		},
		"a bucket is used when it admits what flows in": {
			config: Config{Generation: 1, Promise: bucket}, rows: map[string]Row{"a": of(60, 300), "b": of(20, 0)},
			wantVerdict: Measured, wantUnused: 2000,
		},
		"a key with a larger limit of its own may use it": {
			config: overridden, rows: map[string]Row{"a": named(KeyCount{"big", 200, 0}), "b": named(KeyCount{"big", 100, 0})},
			wantVerdict: Measured,
		},
		"and no more": {
			config: overridden, rows: map[string]Row{"a": named(KeyCount{"big", 200, 0}), "b": named(KeyCount{"big", 107, 0})},
			wantVerdict: Exceeded, want: Overshoot{Observed: 7, Worst: 7},
		},
		"a key with a smaller limit of its own is held to it": {
			config: overridden, rows: map[string]Row{"a": named(KeyCount{"small", 8, 0}), "b": named(KeyCount{"small", 5, 0}, KeyCount{"x", 99, 0})},
			wantVerdict: Exceeded, want: Overshoot{Observed: 3, Worst: 3},
		},
		"a key with a burst of its own may use it": {
			config: overridden, rows: map[string]Row{"a": named(KeyCount{"bursty", 40, 0})},
			wantVerdict: Measured,
		},
		"what a key with a small limit leaves unused is a part of that": {
			config: overridden, rows: map[string]Row{"a": named(KeyCount{"small", 5, 100})},
			wantVerdict: Measured, wantUnused: 5000,
		},
		"the other keys have the limit of all": {
			config: overridden, rows: map[string]Row{"a": named(KeyCount{"x", 60, 0}), "b": named(KeyCount{"x", 42, 0})},
			wantVerdict: Exceeded, want: Overshoot{Observed: 2, Worst: 2},
		},
		"keys that nobody names are held to the limit of all": {
			config: overridden,
			rows: map[string]Row{
				"a": {Admitted: 500, Unlisted: [limiter.MaxRates]int64{60}}, "b": {Admitted: 500, Unlisted: [limiter.MaxRates]int64{41}},
			},
			wantVerdict: ReportsMissing,
		},
		"each holder that served may have carried units over": {
			config: Config{Generation: 1, Promise: plain, Carry: 9}, rows: map[string]Row{"a": of(59, 0), "b": of(59, 0)},
			wantVerdict: Measured, want: Overshoot{Observed: 18, Worst: 18, Bound: 18},
		},
		"and none more": {
			config: Config{Generation: 1, Promise: plain, Carry: 9}, rows: map[string]Row{"a": of(60, 0), "b": of(59, 0)},
			wantVerdict: Exceeded, want: Overshoot{Observed: 19, Worst: 19, Bound: 18},
		},
		"a holder that did not serve carried nothing into the window": {
			config: Config{Generation: 1, Promise: plain, Carry: 9}, rows: map[string]Row{"a": of(110, 0)},
			wantVerdict: Exceeded, want: Overshoot{Observed: 10, Worst: 10, Bound: 9},
		},
		"carries without end are a bound that holds": {
			config: Config{Generation: 1, Promise: plain, Carry: math.MaxInt64}, rows: map[string]Row{"a": of(60, 0), "b": of(59, 0)},
			wantVerdict: Measured, want: Overshoot{Observed: 19, Worst: 19, Bound: math.MaxInt64},
		},
		"nothing bounds a cost that the response reports": {
			config: Config{Generation: 1, Promise: plain, Unsettled: true}, rows: map[string]Row{"a": of(500, 0)},
			wantVerdict: Measured, want: Overshoot{Observed: 400, Worst: 400, Unbounded: true, WorstUnbounded: true},
		},
		"local shares add to what is carried": {
			config: Config{Generation: 1, Promise: plain, Carry: 9},
			rows:   map[string]Row{"a": {Admitted: 80, Local: 20, LocalShare: 25}, "b": of(63, 0)},

			wantVerdict: Measured, want: Overshoot{Observed: 43, Worst: 43, Bound: 43},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := newFleetOf(tc.config, "a", "b").account(tc.rows)
			if got.Verdict != tc.wantVerdict {
				t.Errorf("verdict = %v, want %v", got.Verdict, tc.wantVerdict)
			}
			var overshoot Overshoot
			if got.Overshoot != nil {
				overshoot = *got.Overshoot
				overshoot.WindowEnd, overshoot.WorstEnd = time.Time{}, time.Time{}
			}
			if tc.wantVerdict == Exceeded {
				tc.want.Excess = tc.want.Worst - tc.want.Bound
			}
			if diff := cmp.Diff(tc.want, overshoot); diff != "" {
				t.Errorf("overshoot (-want +got):\n%s", diff)
			}
			if got.UnderUtilization != nil && got.UnderUtilization.Observed != tc.wantUnused {
				t.Errorf("unused = %d, want %d", got.UnderUtilization.Observed, tc.wantUnused)
			}
		})
	}
}

// TestAnEditIsNotAnOvershoot: while holders go over to another generation, what each
// promises holds for a window in which both were enforced.
func TestAnEditIsNotAnOvershoot(t *testing.T) {
	plain := perSecond(100, 100)
	tests := map[string]struct {
		before, after Config
		admitted      int64
	}{
		"a smaller burst": {Config{Promise: perSecond(100, 180)}, Config{Promise: perSecond(100, 120)}, 180},
		"no carry-over":   {Config{Promise: plain, Carry: 50}, Config{Promise: plain}, 150},
		"a cost that is known before": {
			Config{Promise: plain, Unsettled: true}, Config{Promise: plain}, 5000,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.before.Generation, tc.after.Generation = 1, 2
			f := newFleetOf(tc.before, "a")
			f.Report(holder("a"), Report{Generation: 1}, f.now)
			f.Reconfigure(tc.after, f.now)
			again := tc.after
			again.Generation = 3
			f.Reconfigure(again, f.now.Add(time.Millisecond)) // twice in a row
			serve := func(i int64, generation int64) Verdict {
				f.Report(holder("a"), Report{Generation: generation, Rows: []Row{{Windows: at(i, 100), Final: true, Admitted: tc.admitted}}}, f.now)
				for range 4 {
					f.now = f.now.Add(time.Second)
					f.Report(holder("a"), Report{Generation: generation}, f.now)
					f.Advance(f.now)
				}
				return f.Figures(f.now).Verdict
			}
			if got := serve(0, 1); got == Exceeded {
				t.Error("what the old generation promised was held against the new one")
			}
			serve(5, 3) // in a window in which the holder went over
			if got := serve(30, 3); got != Exceeded {
				t.Errorf("verdict = %v of what only the old generation promised, want Exceeded", got)
			}
		})
	}
}

// TestAHolderMayGoOverLate to a smaller limit: the window in which it did is held against
// the larger one.
func TestAHolderMayGoOverLate(t *testing.T) {
	f := newFleetOf(Config{Generation: 1, Promise: perSecond(100, 100)}, "a")
	say := func(generation int64, rows ...Row) {
		f.now = f.now.Add(time.Second)
		f.Report(holder("a"), Report{Generation: generation, Rows: rows}, f.now)
		f.Advance(f.now)
	}
	f.Reconfigure(Config{Generation: 2, Promise: perSecond(50, 50)}, f.now)
	for range 20 {
		say(1)
	}
	say(1, open(20, 60))
	say(2, final(20, 90, 0))
	for range 4 {
		say(2)
	}
	if got := f.Figures(f.now); got.Verdict == Exceeded {
		t.Errorf("what the old generation promised was held against the new one: %+v", got.Overshoot)
	}
	say(2, Row{Windows: at(27, 50), Final: true, Admitted: 90})
	for range 4 {
		say(2)
	}
	if got := f.Figures(f.now).Verdict; got != Exceeded {
		t.Errorf("verdict %v of a window of the new generation, want Exceeded", got)
	}
}

// TestAWindowThatWasOpenAtAnEditMixes what is promised, also when its holder is gone.
func TestAWindowThatWasOpenAtAnEditMixes(t *testing.T) {
	f := newFleetOf(Config{Generation: 1, Promise: perSecond(100, 100)}, "a")
	f.now = noon.Add(time.Second)
	f.report("a", final(0, 90, 0))
	f.Leave(holder("a"))
	f.Reconfigure(Config{Generation: 2, Promise: perSecond(50, 50)}, f.now)
	f.pass()
	if got := f.Figures(f.now); got.Verdict == Exceeded {
		t.Errorf("what the old generation promised was held against the new one: %+v", got.Overshoot)
	}
}

// TestAKeyWithWindowsOfItsOwnIsAudited in those windows.
func TestAKeyWithWindowsOfItsOwnIsAudited(t *testing.T) {
	own := limiter.Rate{Limit: 30, Window: 2 * limiter.Second}
	f := newFleetOf(Config{Generation: 1, Promise: perSecond(100, 100), Keyed: true, Overrides: map[string]Promise{
		"own": {Rates: []limiter.Rate{own}, Most: []int64{30}},
	}}, "a", "b")
	row := named(KeyCount{"own", 20, 0})
	row.Windows = limiter.Windows{N: 1}
	row.Windows.Open[0] = own.WindowAt(limiter.Instant(noon.UnixMicro()))
	got := f.account(map[string]Row{"a": row, "b": row})
	if got.Verdict != Exceeded || got.Overshoot == nil || got.Overshoot.Worst != 10 {
		t.Errorf("figures are %+v, want an overshoot of 10", got)
	}
}

// TestWindowsOfACalendar are not those of others of the same length, and end when the
// calendar says.
func TestWindowsOfACalendar(t *testing.T) {
	tokyo := limiter.Rate{Limit: 100, Window: limiter.Day, Offset: 9 * 3600 * limiter.Second}
	monthly := limiter.Rate{Limit: 100, Window: limiter.MaxWindow, Monthly: true}
	midday := time.Date(2027, 2, 10, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		rate    limiter.Rate
		wantEnd time.Time
	}{
		"a day in another time zone": {tokyo, time.Date(2027, 2, 10, 15, 0, 0, 0, time.UTC)},
		"a month of 28 days":         {monthly, time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(time.Second, Config{Generation: 1, Promise: Promise{Rates: []limiter.Rate{tc.rate}}}, midday.AddDate(0, -2, 0))
			l.Join(holder("a"), midday)
			now := midday
			l.Pass(holder("a"), now)
			report := func(admitted int64, rate limiter.Rate, at time.Time, final bool) {
				now = now.Add(time.Second)
				w := limiter.Windows{N: 1}
				w.Open[0] = rate.WindowAt(limiter.Instant(at.UnixMicro()))
				l.Report(holder("a"), Report{Generation: 1, Rows: []Row{{Windows: w, Final: final, Admitted: admitted}}}, now)
				l.Advance(now)
			}
			aligned := tc.rate
			aligned.Offset, aligned.Monthly = 0, false
			report(1, tc.rate, midday, false)
			report(70, aligned, midday, false) // of an earlier generation, in windows that are not these
			report(80, tc.rate, midday, false)
			now = tc.wantEnd
			report(80, tc.rate, midday, true)
			report(1, tc.rate, tc.wantEnd.Add(time.Second), false)
			for range 3 {
				now = now.Add(time.Second)
				l.Report(holder("a"), Report{Generation: 1}, now)
				l.Advance(now)
			}
			got := l.Figures(now)
			if got.Verdict != Measured || got.Overshoot == nil || !got.Overshoot.WindowEnd.Equal(tc.wantEnd) || got.Overshoot.Observed != 0 {
				t.Errorf("verdict %v, overshoot %+v; want Measured, a window that ended at %s", got.Verdict, got.Overshoot, tc.wantEnd)
			}
		})
	}
}

// TestAWindowInWhichACounterWasSetBackHasNoBound, and no other: what was granted before it
// and the limit once more may be admitted in it.
func TestAWindowInWhichACounterWasSetBackHasNoBound(t *testing.T) {
	start := limiter.Instant(noon.UnixMicro())
	for reset, unbounded := range map[limiter.Instant]bool{
		0: false, start - 1: false, start: true, start + limiter.Instant(limiter.Second) - 1: true, start + limiter.Instant(limiter.Second): false,
	} {
		c := Config{Generation: 1, Promise: perSecond(100, 100)}
		f := newFleetOf(c, "a")
		c.Reset = reset
		f.Reconfigure(c, f.now) // under the same generation
		f.Reconfigure(Config{Generation: 1, Promise: c.Promise}, f.now)
		got := f.account(map[string]Row{"a": of(150, 0)})
		want := Exceeded
		if unbounded {
			want = Measured
		}
		if got.Verdict != want || got.Overshoot.Unbounded != unbounded || got.Overshoot.Observed != 50 {
			t.Errorf("set back %dµs after the start: verdict %v, %+v", reset-start, got.Verdict, *got.Overshoot)
		}
	}
}

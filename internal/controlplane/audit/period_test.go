package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/pkg/limiter"
)

// second is since when the second store of these tests serves, by its own clock.
const second = limiter.Instant(42)

// by returns the row as the store that serves since an instant granted it.
func by(since limiter.Instant, row Row) Row {
	row.Since = since
	return row
}

// TestWindowsOfTwoStoresAreNotAdded moves a limit of 100 a second to a store whose clock
// may be behind, so that an index comes again.
func TestWindowsOfTwoStoresAreNotAdded(t *testing.T) {
	at := func(i int64) time.Time { return noon.Add(time.Duration(i+1) * time.Second) }
	worst := func(i, n, worst, of int64) *Overshoot {
		return &Overshoot{WindowEnd: at(i), Observed: n, Worst: worst, WorstEnd: at(of), Excess: worst}
	}
	tests := map[string]struct {
		resume bool
		run    func(f *fleet)
		want   Verdict
		delta  *Overshoot
		open   *OpenWindow
	}{
		"the same index is another window": {
			run: func(f *fleet) {
				f.report("a", final(0, 100, 0))
				f.pass("a")
				f.moveTo(second)
				f.report("a", by(second, final(0, 100, 0)))
				f.pass("a")
			},
			want: Measured, delta: &Overshoot{WindowEnd: at(0)},
		},
		"also while neither is over": {
			run: func(f *fleet) {
				f.report("a", open(0, 100))
				f.moveTo(second)
				f.report("a", by(second, open(0, 90)))
			},
			want: Starting, open: &OpenWindow{Began: noon, Ends: at(0), Limit: 100, Used: 90},
		},
		"an earlier index is shown, as it was measured last": {
			run: func(f *fleet) {
				f.report("a", final(9, 100, 0))
				f.pass("a")
				f.moveTo(second)
				f.report("a", by(second, final(0, 103, 0)))
				f.pass("a")
			},
			want: Exceeded, delta: worst(0, 3, 3, 0),
		},
		"the clock before does not say that a window is over": {
			run: func(f *fleet) {
				f.report("a", final(9, 100, 0))
				f.pass("a")
				f.report("a", open(10, 20))
				f.moveTo(second)
				f.report("a", by(second, final(-1, 30, 0)), by(second, open(0, 50)))
				f.now = f.now.Add(500 * time.Millisecond)
				f.Advance(f.now)
			},
			want: Measured, delta: &Overshoot{WindowEnd: at(-1)}, open: &OpenWindow{Began: noon, Ends: at(0), Limit: 100, Used: 50},
		},
		"the last window of the store before counts for the worst": {
			run: func(f *fleet) {
				f.report("a", open(0, 104))
				f.moveTo(second)
				f.report("a", final(0, 104, 0), by(second, final(0, 100, 0)))
				f.pass("a")
			},
			want: Exceeded, delta: worst(0, 0, 4, 0),
		},
		"one of the store before that is not known leaves the last one unknown": {
			run: func(f *fleet) {
				f.report("a", final(0, 100, 0))
				f.pass("a")
				f.report("a", open(1, 10))
				f.Lose(holder("a"), f.now)
				f.Bury("a", f.now)
				f.Join(holder("b"), f.now)
				f.moveTo(second)
				for range patience + 5 {
					f.pass("b")
				}
			},
			want: ReportsMissing,
		},
		"one of the store that serves that is not known, too": {
			run: func(f *fleet) {
				f.report("a", final(9, 100, 0))
				f.pass("a")
				f.Join(holder("silent"), f.now)
				f.moveTo(second)
				f.report("a", by(second, final(0, 100, 0)))
				for range patience + 5 {
					f.pass("a")
				}
			},
			want: ReportsMissing, delta: &Overshoot{WindowEnd: at(9), AtLeast: true},
		},
		"rows of a store that nobody heard of are those of one more": {
			run: func(f *fleet) {
				f.report("a", by(second, final(0, 105, 0)))
				f.moveTo(second)
				f.pass("a")
			},
			want: Exceeded, delta: worst(0, 5, 5, 0),
		},
		"what one memory lost explains nothing of another": {
			resume: true,
			run: func(f *fleet) {
				f.report("a", open(0, 101))
				f.moveTo(second)
				f.Remember(unbroken(-90, 90))
				f.report("a", final(0, 101, 0))
				f.pass("a")
			},
			want: Starting, delta: &Overshoot{Worst: 1, WorstEnd: at(0), WorstUnbounded: true},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFleetOf(Config{Generation: 1, Promise: perSecond(100, 100), Resume: tt.resume}, "a")
			f.now = noon.Add(1500 * time.Millisecond)
			tt.run(f)
			got := f.Figures(f.now)
			if diff := cmp.Diff(tt.delta, got.Overshoot, cmpopts.EquateEmpty()); got.Verdict != tt.want || diff != "" {
				t.Errorf("verdict is %d, want %d; Δ (-want +got):\n%s", got.Verdict, tt.want, diff)
			}
			if diff := cmp.Diff(tt.open, got.Open, cmp.Transformer("utc", time.Time.UTC)); diff != "" {
				t.Errorf("open window (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheEndOfAWindowIsOfItsStore: no other row says that it is over.
func TestTheEndOfAWindowIsOfItsStore(t *testing.T) {
	f := newFleet(false, 100, "a")
	f.moveTo(second)
	f.report("a", by(second, final(0, 130, 0)))
	f.Advance(f.now)
	if got := f.Figures(f.now); got.Overshoot == nil || got.Overshoot.Observed != 30 {
		t.Errorf("figures = %+v, %+v; want an overshoot of 30", got, got.Overshoot)
	}
}

// moveTo has another store serve the limit.
func (f *fleet) moveTo(since limiter.Instant) {
	c := f.promised
	c.Since = since
	f.Reconfigure(c, f.now)
}

// TestMorePeriodsThanAreRemembered leaves it open what the forgotten ones admitted.
func TestMorePeriodsThanAreRemembered(t *testing.T) {
	f := newFleetOf(Config{Generation: 1, Promise: perSecond(100, 100)}, "a")
	f.now = noon.Add(1500 * time.Millisecond)
	f.report("a", final(0, 40, 0))
	for i := range maxPeriods {
		f.moveTo(second + limiter.Instant(i))
	}
	f.report("a", final(0, 60, 0), by(second+maxPeriods-1, final(0, 100, 0)))
	f.pass("a")
	got := f.Figures(f.now)
	if want := (&Overshoot{WindowEnd: noon.Add(time.Second), AtLeast: true}); !cmp.Equal(want, got.Overshoot) {
		t.Errorf("Δ (-want +got):\n%s", cmp.Diff(want, got.Overshoot))
	}
	if len(f.windows) != 1 || len(f.rows) != 1 {
		t.Errorf("remembers %d windows and %d tuples, want those of the store that serves", len(f.windows), len(f.rows))
	}
}

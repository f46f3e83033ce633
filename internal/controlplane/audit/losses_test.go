package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// after returns the instant that is the given number of seconds after noon.
func after(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// unbroken returns spans between seconds after noon: each pair of arguments is one.
func unbroken(seconds ...float64) (spans []Unbroken) {
	for i := 0; i+1 < len(seconds); i += 2 {
		spans = append(spans, Unbroken{after(seconds[i]), after(seconds[i+1])})
	}
	return spans
}

// TestAStoreThatGoesOnAfterALoss has a window be used from noon on for nine seconds: its
// last row comes ten seconds after noon.
func TestAStoreThatGoesOnAfterALoss(t *testing.T) {
	resuming := Config{Generation: 1, Promise: perSecond(100, 100), Resume: true}
	tests := map[string]struct {
		config      Config
		admitted    int64
		spans       []Unbroken
		wantVerdict Verdict
		wantBound   int64
		unbounded   bool
	}{
		"nothing was lost, and nothing is explained": {
			config: resuming, admitted: 101, spans: unbroken(-90, 30), wantVerdict: Exceeded,
		},
		"nothing was lost": {
			config: resuming, admitted: 100, spans: unbroken(-90, 30), wantVerdict: Measured,
		},
		"one loss admits one more limit": {
			config: resuming, admitted: 200, spans: unbroken(-90, 3, 5, 30), wantVerdict: Measured, wantBound: 100,
		},
		"what is beyond that may be another loss": {
			config: resuming, admitted: 201, spans: unbroken(-90, 3, 5, 30), wantVerdict: MemoryLost, unbounded: true,
		},
		"two losses admit two": {
			config: resuming, admitted: 300, spans: unbroken(-90, 2, 3, 4, 5, 30), wantVerdict: Measured, wantBound: 200,
		},
		"a loss that may have been before the window was used is not known to touch it": {
			config: resuming, admitted: 101, spans: unbroken(-90, -1, 5, 30), wantVerdict: MemoryLost, unbounded: true,
		},
		"nor is one that may have been after it": {
			config: resuming, admitted: 101, spans: unbroken(-90, 3, 9.5, 30), wantVerdict: MemoryLost, unbounded: true,
		},
		"a loss that may be none of the window's adds nothing to what it may admit": {
			config: resuming, admitted: 100, spans: unbroken(-90, -1, 5, 30), wantVerdict: Measured,
		},
		"a store that was never asked": {
			config: resuming, admitted: 101, wantVerdict: MemoryLost, unbounded: true,
		},
		"a store that does not go on is held to its limit": {
			config: Config{Generation: 1, Promise: perSecond(100, 100)}, admitted: 101, spans: unbroken(-90, 3, 5, 30), wantVerdict: Exceeded,
		},
		"one more of what is promised, which is more than the limit of a bucket": {
			config: Config{Generation: 1, Promise: perSecond(100, 150), Resume: true}, admitted: 300,
			spans: unbroken(-90, 3, 5, 30), wantVerdict: Measured, wantBound: 150,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFleetOf(tt.config, "a")
			f.now = after(10)
			f.Remember(tt.spans)
			f.report("a", Row{Windows: at(0, 100), Final: true, Age: 9 * time.Second, Admitted: tt.admitted})
			f.pass("a")
			if len(tt.spans) == 0 {
				f.now = f.now.Add(lossPatience)
				f.pass("a")
			}
			got := f.Figures(f.now)
			want := &Overshoot{WindowEnd: after(1), Bound: tt.wantBound, Unbounded: tt.unbounded}
			want.Observed = max(0, tt.admitted-tt.config.Promise.Most[0])
			if want.Worst = want.Observed; want.Worst > 0 {
				want.WorstEnd, want.WorstUnbounded = want.WindowEnd, tt.unbounded
			}
			if tt.wantVerdict == Exceeded {
				want.Excess = want.Observed
			}
			if tt.unbounded {
				want.Bound = got.Overshoot.Bound // which does not hold
			}
			if diff := cmp.Diff(want, got.Overshoot); got.Verdict != tt.wantVerdict || diff != "" {
				t.Errorf("verdict %d, want %d; overshoot (-want +got):\n%s", got.Verdict, tt.wantVerdict, diff)
			}
		})
	}
}

func TestAnExcessIsNotMeasuredBeforeItIsKnownWhetherMemoryWasLost(t *testing.T) {
	f := newFleetOf(Config{Generation: 1, Promise: perSecond(100, 100), Resume: true}, "a")
	f.now = after(10)
	f.Remember(unbroken(-90, 3))
	f.report("a", Row{Windows: at(0, 100), Final: true, Age: 9 * time.Second, Admitted: 150})
	f.pass("a")
	if got := f.Figures(f.now).Verdict; got != Starting {
		t.Errorf("verdict %d before the store was asked again, want Starting", got)
	}
	f.Remember(unbroken(-90, 3, 5, 12))
	f.pass("a")
	if got := f.Figures(f.now).Verdict; got != Measured {
		t.Errorf("verdict %d, want Measured", got)
	}
}

func TestEachKeyMayAdmitItsOwnLimitOnceMore(t *testing.T) {
	config := Config{
		Generation: 1, Promise: perSecond(100, 100), Keyed: true, Resume: true,
		Overrides: map[string]Promise{"small": perSecond(10, 10)},
	}
	for admitted, want := range map[int64]Verdict{20: Measured, 21: MemoryLost} {
		f := newFleetOf(config, "a")
		f.now = after(10)
		f.Remember(unbroken(-90, 3, 5, 30))
		row := named(KeyCount{"small", admitted, 0})
		row.Windows, row.Final, row.Age = at(0, 100), true, 9*time.Second
		f.report("a", row)
		f.pass("a")
		got := f.Figures(f.now)
		if got.Verdict != want {
			t.Errorf("a key admitted %d of 10: verdict %d, want %d", admitted, got.Verdict, want)
		}
		if want == Measured && got.Overshoot.Bound != 10 {
			t.Errorf("a key may admit %d more than 10, want 10", got.Overshoot.Bound)
		}
	}
}

func TestWindowsThatMixGenerationsMayHaveGoneOn(t *testing.T) {
	f := newFleetOf(Config{Generation: 1, Promise: perSecond(100, 100), Resume: true}, "a")
	f.now = after(5)
	f.Remember(unbroken(-90, 3, 4, 30))
	f.Reconfigure(Config{Generation: 2, Promise: perSecond(100, 100)}, f.now)
	f.now = after(10)
	f.report("a", Row{Windows: at(0, 100), Final: true, Age: 9 * time.Second, Admitted: 200})
	f.pass("a")
	if got := f.Figures(f.now); got.Verdict == Exceeded {
		t.Errorf("what the generation before allowed is held against this one: %+v", got.Overshoot)
	}
}

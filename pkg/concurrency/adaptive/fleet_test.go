package adaptive_test

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/limiter"
)

// gradient is the configuration that the fleets here learn by.
var gradient = adaptive.Config{
	Min: 1, Max: 512, Initial: 16, Smoothing: 0.2, Tolerance: 1.5,
	Baseline: adaptive.Baseline{Type: adaptive.Measured, Interval: 10 * limiter.Second, ProbeSamples: 20},
}

// aimd is the same by the other algorithm.
func aimd() adaptive.Config {
	c := gradient
	c.Algorithm, c.Backoff = adaptive.AIMD, 0.9
	return c
}

const (
	workers  = 32
	fast     = 50 * limiter.Millisecond
	slow     = 150 * limiter.Millisecond
	overload = 800 // µs between arrivals: 1250 requests/s, where 640 can be served
)

func always(d limiter.Micros) func(limiter.Instant) limiter.Micros {
	return func(limiter.Instant) limiter.Micros { return d }
}

func seconds(s float64) limiter.Instant { return limiter.Instant(s * float64(limiter.Second)) }

// atRest checks what a backend of n workers gets out of a fleet that has learned: it is
// used to the full, and its queue is no longer than the tolerance.
func atRest(t *testing.T, w *world, until float64, n int, service limiter.Micros) {
	t.Helper()
	capacity := float64(n) * float64(limiter.Second) / float64(service)
	goodput, latency := w.run(seconds(until))
	t.Logf("to %vs: limit %d, %.0f/s of %.0f, latency %dms, at most %d in flight", until, w.limit, goodput, capacity, latency/1000, w.most)
	if goodput < 0.93*capacity {
		t.Errorf("to %vs: served %.0f/s of %.0f", until, goodput, capacity)
	}
	if latency > service*5/2 {
		t.Errorf("to %vs: latency is %dms, over 2.5 times %dms", until, latency/1000, service/1000)
	}
}

// TestFleetsLearnTheSameLimit runs fleets of one to 32 under twice the load that the
// backend bears. The backend gets the same for any number of them.
func TestFleetsLearnTheSameLimit(t *testing.T) {
	for name, c := range map[string]adaptive.Config{"Gradient2": gradient, "AIMD": aimd()} {
		for _, n := range []int{1, 2, 3, 8, 32} {
			t.Run(fmt.Sprintf("%s, %d holders", name, n), func(t *testing.T) {
				w := newWorld(c, n, workers, overload, always(fast))
				w.run(seconds(30))
				atRest(t, w, 60, workers, fast)
			})
		}
	}
}

// TestFleetsFollowTheCapacity takes workers away from a backend and gives them back.
func TestFleetsFollowTheCapacity(t *testing.T) {
	for name, c := range map[string]adaptive.Config{"Gradient2": gradient, "AIMD": aimd()} {
		for _, n := range []int{1, 3, 8} {
			t.Run(fmt.Sprintf("%s, %d holders", name, n), func(t *testing.T) {
				w := newWorld(c, n, workers, overload, always(fast))
				w.run(seconds(30))
				high := w.limit
				w.resize(workers / 4)
				w.run(seconds(60))
				atRest(t, w, 90, workers/4, fast)
				if n > 1 && w.limit > high/2 {
					t.Errorf("limit is %d with a quarter of the workers, after %d", w.limit, high)
				}
				w.resize(workers)
				w.run(seconds(120))
				atRest(t, w, 150, workers, fast)
			})
		}
	}
}

// TestFleetsFollowTheLatency has a backend become slower for two minutes. Until the next
// measurement that looks like load.
func TestFleetsFollowTheLatency(t *testing.T) {
	service := func(now limiter.Instant) limiter.Micros {
		if now >= seconds(63) && now < seconds(183) {
			return slow
		}
		return fast
	}
	for _, n := range []int{1, 3, 8} {
		t.Run(fmt.Sprintf("%d holders", n), func(t *testing.T) {
			w := newWorld(gradient, n, workers, overload, service)
			w.run(seconds(30))
			atRest(t, w, 63, workers, fast)
			w.run(seconds(120))
			atRest(t, w, 183, workers, slow)
			w.run(seconds(220))
			atRest(t, w, 250, workers, fast)
		})
	}
}

// TestPublishedGuardFreezesFleets compares what is in flight with the estimate, as the
// published rule does. Behind a share of a third nobody ever learns; a fleet of two
// still does.
func TestPublishedGuardFreezesFleets(t *testing.T) {
	for n, frozen := range map[int]bool{1: false, 2: false, 3: true, 8: true} {
		t.Run(fmt.Sprintf("%d holders", n), func(t *testing.T) {
			w := newWorld(gradient, n, workers, overload, always(fast))
			w.use = func(inFlight, _ int64, l *adaptive.Limit) adaptive.Use {
				return adaptive.Use{InFlight: inFlight, Ceiling: l.Limit()}
			}
			goodput, _ := w.run(seconds(60))
			learned := w.fleet[0].law.Learned() > 0
			t.Logf("limit %d, %.0f/s of 640", w.limit, goodput)
			if learned == frozen {
				t.Errorf("learned is %v, limit %d", learned, w.limit)
			}
			if frozen && w.limit != gradient.Initial {
				t.Errorf("limit moved to %d", w.limit)
			}
		})
	}
}

// TestIdleHoldersDoNotHoldTheLimit sends nearly everything to one holder of five.
func TestIdleHoldersDoNotHoldTheLimit(t *testing.T) {
	w := newWorld(gradient, 5, workers, overload, always(fast))
	w.fleet[2].weight = 1000
	w.run(seconds(60))
	share := w.fleet[2].share
	if w.limit < 60 {
		t.Errorf("limit is %d, learned by one holder with a share of %d", w.limit, share)
	}
	for i, m := range w.fleet {
		if got := m.law.Limit(); got < w.limit/2 {
			t.Errorf("holder %d is at %d while the fleet is at %d", i, got, w.limit)
		}
	}
}

// TestLittleLoadTeachesNothing leaves the limit alone where it is not used.
func TestLittleLoadTeachesNothing(t *testing.T) {
	w := newWorld(gradient, 1, workers, 50*limiter.Millisecond, always(fast))
	w.run(seconds(60))
	if got := w.fleet[0].law.Limit(); got != gradient.Initial {
		t.Errorf("limit is %d, want %d", got, gradient.Initial)
	}
}

// TestOnlyRollingBaselinesCreep overloads a backend for ten minutes. A rolling baseline
// takes latency under load for the backend's own, and the limit rises without end.
func TestOnlyRollingBaselinesCreep(t *testing.T) {
	rolling := gradient
	rolling.Baseline = adaptive.Baseline{Type: adaptive.Rolling, Samples: 100}
	for name, tc := range map[string]struct {
		config adaptive.Config
		creeps bool
	}{"Measured": {gradient, false}, "Rolling": {rolling, true}} {
		for _, n := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s, %d holders", name, n), func(t *testing.T) {
				w := newWorld(tc.config, n, workers, overload, always(fast))
				w.run(seconds(600))
				base, limit := w.fleet[0].law.Baseline(), w.limit
				if n == 1 {
					limit = w.fleet[0].law.Limit()
				}
				if creeps := base > 2*fast && limit > 150; creeps != tc.creeps {
					t.Errorf("baseline is %dms and limit %d after ten minutes of overload", base/1000, limit)
				}
			})
		}
	}
}

// TestFleetsMeasureTogether holds the baseline at latency without load, for as long as
// one wants to load the backend.
func TestFleetsMeasureTogether(t *testing.T) {
	w := newWorld(gradient, 8, workers, overload, always(fast))
	w.run(seconds(300))
	for i, m := range w.fleet {
		if got := m.law.Baseline(); got < fast*8/10 || got > fast*12/10 {
			t.Errorf("baseline of holder %d is %dms, want about %dms", i, got/1000, fast/1000)
		}
	}
}

// TestHealthyFleetsHardlyMeasure counts for ten minutes how often load was held down
// though the backend can serve it all.
func TestHealthyFleetsHardlyMeasure(t *testing.T) {
	for _, n := range []int{1, 4, 16} {
		t.Run(fmt.Sprintf("%d holders", n), func(t *testing.T) {
			w := newWorld(gradient, n, workers, 2000, always(fast)) // 500/s of 640
			w.run(seconds(60))
			w.held = 0
			w.run(seconds(660))
			if got := float64(w.held) / float64(w.arrived); got > 0.001 {
				t.Errorf("%.4f of the requests met a measurement", got)
			}
		})
	}
}

// TestBackendsThatVary has latency vary as much as its mean: what is judged are means.
func TestBackendsThatVary(t *testing.T) {
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d holders", n), func(t *testing.T) {
			w := newWorld(gradient, n, workers, overload, always(fast))
			w.varies = true
			w.run(seconds(60))
			goodput, latency := w.run(seconds(300))
			if goodput < 0.9*640 || latency > 3*fast {
				t.Errorf("served %.0f/s of 640 in %dms", goodput, latency/1000)
			}
		})
	}
}

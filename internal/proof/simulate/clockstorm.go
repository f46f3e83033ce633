package simulate

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// StormOfClocks is a storm in which nodes also have their time of day set. It has only
// windows, because other algorithms look back on what a clock may have skipped, and limits
// are not edited. A server keeps the counters, or n controllers that lead one after the
// other.
func StormOfClocks(seed uint64, m Model, p limiter.Params, n int) Scenario {
	s := Storm(seed, m, p)
	f := fate{Scenario: &s, rng: rand.New(rand.NewPCG(seed, ofSteps)), window: time.Duration(p.Rates[0].Window) * time.Microsecond}
	s.Windows, s.Controllers, s.Faults.Edits = 30, n, nil
	for range s.Holders {
		s.Load.Share = append(s.Load.Share, math.Pow(f.rng.Float64(), 4)) // some are idle for long
	}
	for range 1 + f.rng.IntN(4) {
		s.Faults.Steps = append(s.Faults.Steps, Step{At: f.whenever(), By: f.even(time.Hour), Node: f.rng.IntN(s.Holders)})
	}
	if n > 0 {
		f.changeLeaders()
	} else {
		f.setServer(seed%2 == 0)
	}
	return s
}

// A fate decides what goes wrong.
type fate struct {
	*Scenario
	rng    *rand.Rand
	window time.Duration
}

func (f *fate) whenever() time.Duration {
	return time.Duration(f.rng.Int64N(int64(f.Windows) * int64(f.window)))
}

func (f *fate) even(most time.Duration) time.Duration {
	return time.Duration(f.rng.Int64N(int64(2*most))) - most
}

// changeLeaders has processes crash, end in order and be cut off from the API server,
// and clocks set that are off by so little that two leaders would serve the same windows.
func (f *fate) changeLeaders() {
	f.Faults.Losses = nil
	f.Clocks.Offset = 10 * f.window
	for range 2 + f.rng.IntN(5) {
		f.Faults.Steps = append(f.Faults.Steps, Step{
			At: f.whenever(), By: f.even(10 * f.window), Node: f.Holders + 1 + f.rng.IntN(f.Controllers),
		})
		f.Faults.Ends = append(f.Faults.Ends, End{
			At: f.whenever(), Down: f.whenever() / 5, Controller: f.rng.IntN(f.Controllers), How: Ending(f.rng.IntN(3)),
		})
		f.Faults.Crashes = append(f.Faults.Crashes, Crash{At: f.whenever(), Down: f.window / 5, Holder: f.rng.IntN(f.Holders)})
	}
}

// setServer sets the server's clock while its counts are there, or sets it back while they
// are lost: once, because a holder whose floor has not caught up yet knows nothing of what was
// served since.
func (f *fate) setServer(keeps bool) {
	f.Look = f.window/4 + time.Duration(f.rng.Int64N(int64(4*f.window)))
	if keeps {
		for i := range f.Faults.Losses {
			f.Faults.Losses[i].Keeps = true
		}
		for range 1 + f.rng.IntN(4) {
			f.Faults.Steps = append(f.Faults.Steps, Step{At: f.whenever(), By: f.even(2 * f.window), Node: f.Holders})
		}
		return
	}
	for i := range f.Faults.Losses {
		f.Faults.Losses[i].Keeps = false
	}
	l := Loss{At: f.whenever(), Down: f.whenever() / 40}
	f.Faults.Losses = append(f.Faults.Losses, l)
	back := time.Duration(f.rng.Int64N(int64(2 * f.window)))
	f.Faults.Steps = append(f.Faults.Steps, Step{At: l.At + l.Down/2, By: -back, Node: f.Holders})
}

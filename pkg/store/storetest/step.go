package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// testFollowsStep runs random commands on a few keys and compares every answer
// with that of Step at the instant the store says it decided.
func testFollowsStep(t *testing.T, h harness) {
	const calls, keys = 2000, 4
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable on purpose
	long := h.openWindow(t)
	h.Advance(limiter.MinWindow) // windows of this length lie in the memory too
	lengths := []limiter.Micros{limiter.MinWindow, limiter.MinWindow + 7, long}

	states := make([]limiter.State, keys)
	grants := make([]limiter.Windows, keys)
	p := limiter.Params{Generation: 1, Rates: Rates(rng, lengths, 40)}
	for i := range calls {
		if rng.IntN(50) == 0 {
			p = limiter.Params{Generation: p.Generation + 1, Rates: Rates(rng, lengths, 40)}
		}
		asked := p
		asked.Generation -= int64(rng.IntN(8) / 7) // now and then by a holder that is behind
		k := rng.IntN(keys)
		c := Command(rng, 12, grants[k])
		got := h.apply(t, key(fmt.Sprint(k)), asked, c)

		var want limiter.Result
		states[k], want = asked.Step(states[k], got.Now, c)
		if d := diff(want, got); d != "" {
			t.Fatalf("call %d, %+v of %+v: Step and the store differ (-Step +store):\n%s", i, c, asked, d)
		}
		if got.Granted > 0 {
			grants[k] = got.Windows
		}
	}
}

// Rates returns 1 to len(lengths) rates of different lengths and limits up to
// most.
func Rates(rng *rand.Rand, lengths []limiter.Micros, most int64) []limiter.Rate {
	var rates []limiter.Rate
	for _, i := range rng.Perm(len(lengths))[:1+rng.IntN(min(len(lengths), limiter.MaxRates))] {
		rates = append(rates, limiter.Rate{Limit: 1 + rng.Int64N(most), Window: lengths[i]})
	}
	return rates
}

// Command returns a take or a return of up to most units; a return names the
// windows of a grant, or no windows that ever were.
func Command(rng *rand.Rand, most int64, grant limiter.Windows) limiter.Command {
	if rng.IntN(4) > 0 {
		low := 1 + rng.Int64N(most)
		return take(low, low+rng.Int64N(most))
	}
	if rng.IntN(4) == 0 {
		grant.Open[0].Index--
	}
	return giveBack(1+rng.Int64N(most), grant)
}

package sizing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/weir-dev/weir/pkg/limiter"
)

// textbook is AdaGrad in the logarithm of the size as it stands in the books: its
// first step is as long as the whole range.
type textbook struct{ low, high, log, squares float64 }

func newTextbook(low, high, start float64) *textbook {
	return &textbook{low: low, high: high, log: math.Log(start)}
}

func (a *textbook) size() int64 {
	return int64(math.Round(max(a.low, min(a.high, math.Exp(a.log)))))
}

func (a *textbook) observe(demand int64) {
	b := math.Exp(a.log)
	g := strand*b/2 - roundTrip*float64(demand)/b
	a.squares += g * g
	scale := max(math.Log(a.high)-math.Log(a.low), 1e-6)
	step := scale / math.Sqrt(1e-8+a.squares) * g
	a.log = max(math.Log(a.low), min(math.Log(a.high), a.log-step))
}

// steady returns demands that vary evenly about their mean.
func steady(seed uint64, mean int64, n int) []int64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	demands := make([]int64, n)
	for i := range demands {
		demands[i] = mean/2 + rng.Int64N(mean+1)
	}
	return demands
}

// bestStatic returns the cost of the best single size for all demands.
func bestStatic(demands []int64) (total float64) {
	var sum float64
	for _, d := range demands {
		sum += float64(d)
	}
	b := bestSize(sum / float64(len(demands)))
	for _, d := range demands {
		total += windowCost(b, float64(d))
	}
	return total
}

// learnedCost returns what the sizes of s cost, which learns from the demands, and
// what it has learned. guess, if not nil, gives the forecast for each window.
func learnedCost(z Rule, s Sizer, demands []int64, guess func(window int) int64) (float64, Sizer) {
	var total float64
	for i, d := range demands {
		if guess != nil {
			s.forecast = float32(guess(i))
		}
		total += windowCost(float64(z.Size(s)), float64(d))
		s = z.Observe(s, d)
	}
	return total, s
}

func TestSizeStartsWhereItIsSet(t *testing.T) {
	for _, predictive := range []bool{false, true} {
		z := Rule{Low: 2, High: 500, Start: 17, Predictive: predictive}
		if got := z.Size(Sizer{}); got != 17 {
			t.Errorf("predictive=%t: first size is %d, want 17", predictive, got)
		}
	}
}

func TestRegretPerWindowVanishes(t *testing.T) {
	z := Rule{Low: 1, High: 1_000_000, Start: 1}
	demands := steady(1, 1000, 1024)
	regret := func(cost float64, n int) float64 { return (cost - bestStatic(demands[:n])) / float64(n) }
	ours := func(n int) float64 {
		cost, _ := learnedCost(z, Sizer{}, demands[:n], nil)
		return regret(cost, n)
	}
	books := func(n int) float64 {
		a, cost := newTextbook(1, 1_000_000, 1), 0.0
		for _, d := range demands[:n] {
			cost += windowCost(float64(a.size()), float64(d))
			a.observe(d)
		}
		return regret(cost, n)
	}
	t.Logf("average regret per window after 16 and 1024: %.2f and %.2f, by the textbook %.2f and %.2f",
		ours(16), ours(1024), books(16), books(1024))
	if ours(1024) > ours(16)/40 {
		t.Errorf("average regret fell only from %.2f to %.2f", ours(16), ours(1024))
	}
	if ours(1024) > books(1024) {
		t.Errorf("average regret is %.2f, by the textbook %.2f", ours(1024), books(1024))
	}
}

func TestRegretIsWithinTheRootOfTheWindows(t *testing.T) {
	for name, demands := range map[string][]int64{
		"steady":      steady(2, 1000, 1024),
		"small":       steady(3, 6, 1024),
		"alternating": pattern(1024, 10, 5000),
		"rare bursts": pattern(1024, 3, 3, 3, 3, 3, 3, 3, 3, 3, 20_000),
		"rising":      rising(1024),
	} {
		for _, start := range []int64{1, 100, 10_000} {
			t.Run(fmt.Sprintf("%s from %d", name, start), func(t *testing.T) {
				z := Rule{Low: 1, High: 10_000, Start: start}
				const warm = 64
				_, s := learnedCost(z, Sizer{}, demands[:warm], nil)
				for n := 16; warm+n <= len(demands); n *= 2 {
					rest := demands[warm : warm+n]
					cost, _ := learnedCost(z, s, rest, nil)
					best := bestStatic(rest)
					if regret, mean := cost-best, best/float64(n); regret > 2*mean*math.Sqrt(float64(n)) {
						t.Errorf("regret of %d windows is %.0f, above %.0f·√%d", n, regret, 2*mean, n)
					}
				}
			})
		}
	}
}

func pattern(n int, cycle ...int64) []int64 {
	demands := make([]int64, n)
	for i := range demands {
		demands[i] = cycle[i%len(cycle)]
	}
	return demands
}

func rising(n int) []int64 {
	demands := make([]int64, n)
	for i := range demands {
		demands[i] = int64(10 + 2*i)
	}
	return demands
}

func TestSizeFollowsADemandThatChangesAfterLong(t *testing.T) {
	z := Rule{Low: 1, High: 10_000, Start: 1}
	_, s := learnedCost(z, Sizer{}, pattern(20_000, 100_000), nil)
	for n := range 400 {
		s = z.Observe(s, 50)
		if got := float64(z.Size(s)); got < 2*bestSize(50) {
			t.Logf("within a factor of 2 after %d windows", n+1)
			return
		}
	}
	t.Errorf("size is still %d, where %.0f is best", z.Size(s), bestSize(50))
}

func TestPredictionsHelpAsFarAsTheyAreRight(t *testing.T) {
	swings := pattern(2000, 40, 4000)
	rng := rand.New(rand.NewPCG(4, 0))
	clairvoyant := func(demands []int64) (total float64) {
		for _, d := range demands {
			total += leastCost(float64(d))
		}
		return total
	}
	z := Rule{Low: 1, High: 10_000, Start: 100, Predictive: true}
	robust := z
	robust.Predictive = false
	robustCost, _ := learnedCost(robust, Sizer{}, swings, nil)
	for name, tc := range map[string]struct {
		guess func(int) int64
		than  float64
		most  float64
	}{
		"perfect, beside the clairvoyant":   {func(i int) int64 { return swings[i] }, clairvoyant(swings), 1.0015},
		"10% noise, beside the clairvoyant": {func(i int) int64 { return int64(float64(swings[i]) * (0.9 + 0.2*rng.Float64())) }, clairvoyant(swings), 1.0025},
		"adversarial, beside the learner":   {func(i int) int64 { return swings[(i+1)%2] }, robustCost, 1.01},
	} {
		t.Run(name, func(t *testing.T) {
			cost, _ := learnedCost(z, Sizer{}, swings, tc.guess)
			ratio := cost / tc.than
			t.Logf("ratio %.4f", ratio)
			if ratio > tc.most {
				t.Errorf("cost ratio is %.4f, above %.4f", ratio, tc.most)
			}
		})
	}
}

func TestOwnForecastHelpsWhereDemandHasInertia(t *testing.T) {
	var demands []int64
	for _, level := range []int64{30, 9000, 200, 60_000, 5} {
		demands = append(demands, steady(5, level, 40)...)
	}
	z := Rule{Low: 1, High: 10_000, Start: 100}
	adaptive, _ := learnedCost(z, Sizer{}, demands, nil)
	z.Predictive = true
	predictive, _ := learnedCost(z, Sizer{}, demands, nil)
	t.Logf("predictive costs %.3f of adaptive", predictive/adaptive)
	if predictive > adaptive {
		t.Errorf("predictive sizes cost %.0f, learned ones %.0f", predictive, adaptive)
	}
}

// TestAGivenPredictionGainsLittle: what it would be worth to be given each window's demand
// beforehand, beside learning it. The costs are those of the round trips and the stranded units,
// over the least there can be. Only a demand that jumps by a hundredfold from one window to the
// next would gain by it.
func TestAGivenPredictionGainsLittle(t *testing.T) {
	var levels []int64
	for _, level := range []int64{30, 9000, 200, 60_000, 5} {
		levels = append(levels, steady(5, level, 200)...)
	}
	for name, tc := range map[string]struct {
		demands []int64
		most    float64 // gain over an own forecast
	}{
		"steady":                 {steady(1, 1000, 1000), 0.08},
		"levels of 200 windows":  {levels, 0.08},
		"rising":                 {rising(1000), 0.08},
		"twofold every window":   {pattern(1000, 500, 1000), 0.08},
		"hundredfold every time": {pattern(1000, 40, 4000), math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			var least float64
			for _, d := range tc.demands {
				least += leastCost(float64(d))
			}
			z := Rule{Low: 1, High: 100_000, Start: 10}
			learned, _ := learnedCost(z, Sizer{}, tc.demands, nil)
			z.Predictive = true
			own, _ := learnedCost(z, Sizer{}, tc.demands, nil)
			given, _ := learnedCost(z, Sizer{}, tc.demands, func(i int) int64 { return tc.demands[i] })
			t.Logf("over the least cost: learned %.3f, by an own forecast %.3f, by a given one %.3f", learned/least, own/least, given/least)
			if gain := own/given - 1; gain > tc.most {
				t.Errorf("a given prediction gains %.3f, more than is said", gain)
			}
		})
	}
}

// TestNoLockOut has a limit of 100 and leases that are granted whole or not at all.
// Demand is 60 units a window.
func TestNoLockOut(t *testing.T) {
	const limit, demand = 100, 60
	// served plays a window and returns how much of the demand was served. Demand
	// is only learned after a grant, as it stands in the books.
	served := func(size func() int64, observe func(int64), refused func()) (n int64) {
		left := int64(limit)
		for n < demand {
			batch := size()
			if batch > left {
				refused()
				break
			}
			left -= batch
			n = min(demand, n+batch)
		}
		if n > 0 {
			observe(demand)
		}
		return n
	}
	t.Run("the textbook is locked out", func(t *testing.T) {
		a := newTextbook(1, 1_000_000, 1)
		var last int64
		for range 50 {
			last = served(a.size, a.observe, func() {})
		}
		if last != 0 {
			t.Errorf("served %d: the comparison shows nothing", last)
		}
	})
	t.Run("ours is not", func(t *testing.T) {
		z, s := Rule{Low: 1, High: limit, Start: 1}, Sizer{}
		var last int64
		for range 50 {
			last = served(
				func() int64 { return z.Size(s) },
				func(d int64) { s = z.Observe(s, d) },
				func() { s = z.refused(s) })
		}
		if last < demand/2 {
			t.Errorf("served %d of %d in the end", last, demand)
		}
	})
}

func TestRefusalsShrinkTheSizeAndLearningGoesOn(t *testing.T) {
	for _, predictive := range []bool{false, true} {
		t.Run(fmt.Sprintf("predictive=%t", predictive), func(t *testing.T) {
			z := Rule{Low: 1, High: 1000, Start: 800, Predictive: predictive}
			s := Sizer{}
			sizes := []int64{z.Size(s)}
			for range 30 {
				s = z.refused(s)
				sizes = append(sizes, z.Size(s))
			}
			if !slices.IsSortedFunc(sizes, func(a, b int64) int { return int(b - a) }) {
				t.Errorf("sizes grew by refusals: %v", sizes)
			}
			if sizes[1] > 450 || sizes[30] > 80 {
				t.Errorf("sizes by refusals are %v, want half at once and a tenth in the end", sizes)
			}
			for range 100 {
				s = z.Observe(s, 1000)
			}
			if got := float64(z.Size(s)); math.Abs(math.Log(got/bestSize(1000))) > 0.2 {
				t.Errorf("size is %v after 100 windows, want about %.0f", got, bestSize(1000))
			}
			for range 1000 {
				s = z.refused(z.Observe(s, 1000))
			}
			if got, want := float64(z.Size(s)), bestSize(1000)/math.Sqrt(1+contention); math.Abs(math.Log(got/want)) > 0.2 {
				t.Errorf("size is %v when each window refuses, want about %.0f", got, want)
			}
		})
	}
}

func TestLeaseIsNoMoreThanIsLikelyToBeAskedFor(t *testing.T) {
	z := Rule{Low: 1, High: 1000, Start: 30}
	_, plenty := learnedCost(z, Sizer{}, pattern(100, 9), nil)
	scarce := plenty
	for range 10 {
		scarce = z.Heard(scarce, 3, limiter.Result{Granted: 3, Remaining: 10, Limit: 100}, 0.5)
	}
	if got, want := z.Size(plenty), int64(math.Round(bestSize(9))); got != want {
		t.Fatalf("size is %d, want %d: the rest tests nothing", got, want)
	}
	for name, tc := range map[string]struct {
		s    Sizer
		life float64
		want int64
	}{
		"nothing learned":                   {Sizer{}, 0.01, 30},
		"plenty, a whole window":            {plenty, 1, 10},
		"plenty, a ninth of a window":       {plenty, 1.0 / 9, 2},
		"scarce, a whole window":            {scarce, 1, 6},
		"scarce, a ninth of a window":       {scarce, 1.0 / 9, 1},
		"scarce, the window is over":        {scarce, 0, 1},
		"a life that is longer than it can": {plenty, 7, 10},
		"a life that is not a number":       {plenty, math.NaN(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := z.Lease(tc.s, tc.life); got != tc.want {
				t.Errorf("lease of %d, want %d", got, tc.want)
			}
		})
	}
}

func TestScarcityIsForgottenWhenMuchIsLeftOver(t *testing.T) {
	z := Rule{Low: 1, High: 1000, Start: 30}
	grant := func(s Sizer, remaining int64, life float64, n int) Sizer {
		for range n {
			s = z.Heard(s, 3, limiter.Result{Granted: 3, Remaining: remaining, Limit: 100}, life)
		}
		return s
	}
	s := grant(Sizer{}, 24, 0.9, 5)
	if s.scarcity < 200 {
		t.Fatalf("scarcity is %d after 5 answers that little is left", s.scarcity)
	}
	if got := grant(s, 90, 0.9, 100).scarcity; got != s.scarcity {
		t.Errorf("scarcity fell to %d by what is left early in a window", got)
	}
	if got := grant(s, 60, 0.1, 50).scarcity; got > 10 {
		t.Errorf("scarcity is %d after 50 windows with much left at their end", got)
	}
}

func TestPauseGrowsUntilLeasesBringEnough(t *testing.T) {
	z := Rule{Low: 1, High: 1000, Start: 30, Part: 0.05, LongestPause: 1e9}
	s := Sizer{}
	if got := z.Pause(s); got != 0 {
		t.Fatalf("pause is %d before anything was short", got)
	}
	var pauses []int64
	for range 20 {
		s = z.Heard(s, 10, limiter.Result{Granted: 4, Limit: 100}, 1)
		pauses = append(pauses, z.Pause(s))
	}
	if pauses[0] != 1e6 || pauses[1] != 2e6 || pauses[19] != 1e9 || !slices.IsSorted(pauses) {
		t.Errorf("pauses are %v, want 1 ms, doubling, up to 1 s", pauses)
	}
	for range 300 {
		s = z.Heard(s, 10, limiter.Result{Granted: 5, Limit: 100}, 1)
	}
	if got := z.Pause(s); got != 0 {
		t.Errorf("pause is %d after leases that brought enough", got)
	}
}

func TestOneWindowDoesNotSpanTheRange(t *testing.T) {
	for _, d := range []int64{1, 60, 1_000_000, math.MaxInt64} {
		z := Rule{Low: 1, High: 1_000_000, Start: 1000}
		if got := z.Size(z.Observe(Sizer{}, d)); got < 450 || got > 2100 {
			t.Errorf("size went from 1000 to %d by a demand of %d", got, d)
		}
		a := newTextbook(1, 1_000_000, 1000)
		a.observe(d)
		if got := a.size(); got != 1 && got != 1_000_000 {
			t.Errorf("the textbook went to %d: the comparison shows nothing", got)
		}
	}
}

func TestSizerIsSmallAndAllocatesNothing(t *testing.T) {
	if got := unsafe.Sizeof(Sizer{}); got != 16 {
		t.Errorf("a Sizer takes %d bytes, want 16", got)
	}
	z, s := Rule{Low: 1, High: 1000, Start: 10, Predictive: true}, Sizer{}
	if n := testing.AllocsPerRun(100, func() {
		s = z.refused(z.Observe(s, z.Size(s)))
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzSizeStaysWithinItsBounds begins with any state: memory that was corrupted
// must not harm either.
func FuzzSizeStaysWithinItsBounds(f *testing.F) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	f.Add(int64(1), int64(100), int64(10), true, inf, nan, -inf, int16(7), uint8(255), uint8(1), 0.5, int64(5), int64(-1))
	f.Add(int64(3), int64(3), int64(9), false, nan, float32(-1), nan, int16(-32768), uint8(0), uint8(255), math.NaN(), int64(math.MaxInt64), int64(math.MinInt64))
	f.Add(int64(1), int64(1_000_000_000_000), int64(1), true, -inf, float32(math.MaxFloat32), inf, int16(32767), uint8(7), uint8(250), math.Inf(-1), int64(0), int64(1))
	f.Fuzz(func(t *testing.T, low, high, start int64, predictive bool, a, b, c float32, d int16, e, g uint8, life float64, demand, next int64) {
		low = max(1, low%1_000_000_000_001)
		z := Rule{Low: low, High: max(low, high%1_000_000_000_001), Start: start, Predictive: predictive, Part: life, LongestPause: 1e9}
		s := Sizer{log: a, squares: b, forecast: c, debt: d, scarcity: e, steps: g}
		check := func(after string) {
			for _, got := range []int64{z.Size(s), z.Lease(s, life)} {
				if got < z.Low || got > z.High {
					t.Fatalf("size %d after %s is outside %d to %d; state %+v", got, after, z.Low, z.High, s)
				}
			}
			if got := z.Pause(s); got < 0 || got > z.LongestPause {
				t.Fatalf("pause %d after %s is outside 0 to %d; state %+v", got, after, z.LongestPause, s)
			}
		}
		check("nothing")
		s = z.Observe(s, demand)
		check("a window")
		s = z.Heard(s, start, limiter.Result{Reason: limiter.Exhausted, Remaining: next, Limit: demand}, life)
		check("a refusal")
		s = z.Observe(s, next)
		check("another window")
	})
}

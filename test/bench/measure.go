package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	rounds = 15                    // odd, so that a median is a measurement
	slice  = 20 * time.Millisecond // one contender's turn
)

// A load is how contenders are called.
type load struct{ procs, goroutines int }

// A figure is what one contender did in one case.
type figure struct {
	name   string
	ours   bool
	ns     []float64 // per operation, by round
	allocs float64   // per operation
	wrong  bool      // it decided otherwise than the case is about
	ops    int       // operations in all rounds
	trips  int64     // round trips they took, 0 when that is not counted
}

// measure lets the contenders take turns under the load.
func measure(contenders []contender, keys []string, l load, allowed bool) []figure {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(l.procs))
	figures := make([]figure, len(contenders))
	turns := make([]int, len(contenders))
	for i, c := range contenders {
		figures[i].name, figures[i].ours = c.name, c.ours
		warm(c, keys)
		figures[i].wrong = !settles(c, keys[0], allowed)
		turns[i] = calibrate(c, keys, l.goroutines)
	}
	for range rounds {
		for i, c := range contenders {
			var before, after runtime.MemStats
			trips := c.tripped()
			runtime.ReadMemStats(&before)
			took := spend(c, keys, l.goroutines, turns[i])
			runtime.ReadMemStats(&after)
			ops := float64(turns[i] * l.goroutines)
			figures[i].ns = append(figures[i].ns, float64(took.Nanoseconds())/ops)
			figures[i].allocs = float64(after.Mallocs-before.Mallocs) / ops
			figures[i].ops += turns[i] * l.goroutines
			figures[i].trips += c.tripped() - trips
		}
	}
	for _, c := range contenders {
		c.close()
	}
	return figures
}

// warm makes a contender know all keys. It meets them in another order than the
// run, or what it keeps of them would lie in memory in the order of the run.
func warm(c contender, keys []string) {
	for _, key := range slices.Sorted(slices.Values(keys)) {
		c.decide(key)
	}
}

// settles waits until a contender decides as the case wants it: a store that is new
// serves no window that began before it.
func settles(c contender, key string, allowed bool) bool {
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		if c.decide(key) == allowed {
			return true
		}
	}
	return false
}

// calibrate returns how many operations of each goroutine fill a turn, at least one.
func calibrate(c contender, keys []string, goroutines int) int {
	for n := 16; ; n *= 2 {
		if took := spend(c, keys, goroutines, n); took > slice/4 {
			return max(1, int(float64(n)*float64(slice)/float64(took)))
		}
	}
}

// spend returns the wall time of n operations on each of that many goroutines.
func spend(c contender, keys []string, goroutines, n int) time.Duration {
	var wait sync.WaitGroup
	begin := time.Now()
	for g := range goroutines {
		wait.Go(func() {
			i := g * len(keys) / goroutines
			for range n {
				c.decide(keys[i])
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
	wait.Wait()
	return time.Since(begin)
}

// median returns the median of v, whose number is odd, and a 95 % interval of it, which needs
// no assumption on how the values spread: of 15 measurements, the 4th and the 12th.
func median(v []float64) (mid, low, high float64) {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	half := int(math.Ceil(1.96 * math.Sqrt(float64(n)) / 2))
	return v[n/2], v[n/2-half], v[n/2+half]
}

// ratios returns a's rounds over b's, round by round.
func ratios(a, b figure) []float64 { return quotients(a.ns, b.ns) }

// quotients returns a over b, round by round.
func quotients(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}

// An addition is what a way adds to the direct one, beside what another adds.
type addition struct {
	nanoseconds float64
	ratio       float64
	low, high   float64 // a 95 % interval of the ratio
}

// resamples is large enough that the interval is the same when it is computed again.
const resamples = 4000

// additionTo returns what figures exceed a base by, in the median over the rounds, beside
// what others exceed it by. The interval is a percentile bootstrap (Efron and Tibshirani,
// An Introduction to the Bootstrap, chapter 13) over the rounds. Each is drawn as a
// whole, because a noisy moment met all ways.
func additionTo(base, other, figures []float64) addition {
	all, chance := make([]int, len(base)), rand.New(rand.NewPCG(1, 2))
	for i := range all {
		all[i] = i
	}
	added := func(figures []float64, rounds []int) float64 {
		more := make([]float64, len(rounds))
		for i, round := range rounds {
			more[i] = figures[round] - base[round]
		}
		return middle(more)
	}
	ratio := func(rounds []int) float64 {
		if beside := added(other, rounds); beside > 0 {
			return added(figures, rounds) / beside
		}
		return math.Inf(1)
	}
	drawn, ratios := make([]int, len(all)), make([]float64, resamples)
	for n := range ratios {
		for i := range drawn {
			drawn[i] = chance.IntN(len(all))
		}
		ratios[n] = ratio(drawn)
	}
	slices.Sort(ratios)
	return addition{added(figures, all), ratio(all), ratios[resamples/40], ratios[resamples-1-resamples/40]}
}

// middle returns the median of an odd number of values.
func middle(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }

// String is the ratio with its interval.
func (a addition) String() string {
	if math.IsInf(a.ratio, 1) {
		return "lost in noise" // the other added nothing
	}
	high := "∞" // the other added nothing in some of the resamples
	if !math.IsInf(a.high, 1) {
		high = fmt.Sprintf("%.2f", a.high)
	}
	return fmt.Sprintf("%.2f (%.2f–%s)", a.ratio, a.low, high)
}

// reaches says whether the ratio reaches a goal, and whether the rounds agree.
func (a addition) reaches(goal float64) string {
	switch {
	case math.IsInf(a.ratio, 1):
		return a.String()
	case a.ratio > goal && a.low <= goal:
		return "missed by the median only"
	default:
		return judge(a.ratio, a.high, goal, 0)
	}
}

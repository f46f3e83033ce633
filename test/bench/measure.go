package main

import (
	"math"
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

// calibrate returns how many operations of each goroutine fill a turn.
func calibrate(c contender, keys []string, goroutines int) int {
	for n := 16; ; n *= 2 {
		if took := spend(c, keys, goroutines, n); took > slice/4 {
			return int(float64(n) * float64(slice) / float64(took))
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

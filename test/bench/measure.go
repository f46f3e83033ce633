package main

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	rounds = 15                    // odd, so that a median is a measurement
	slice  = 20 * time.Millisecond // one contender's turn
)

// A figure is what one contender did in one case.
type figure struct {
	name   string
	ns     []float64 // per operation, by round
	allocs float64   // per operation
	wrong  bool      // it decided otherwise than the case is about
}

// measure lets the contenders take turns on procs goroutines and processors.
func measure(contenders []contender, keys []string, procs int, allowed bool) []figure {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	figures := make([]figure, len(contenders))
	turns := make([]int, len(contenders))
	for i, c := range contenders {
		figures[i].name = c.name
		warm(c, keys)
		figures[i].wrong = c.decide(keys[0]) != allowed
		turns[i] = calibrate(c, keys, procs)
	}
	for range rounds {
		for i, c := range contenders {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			took := run(c, keys, procs, turns[i])
			runtime.ReadMemStats(&after)
			ops := float64(turns[i] * procs)
			figures[i].ns = append(figures[i].ns, float64(took.Nanoseconds())/ops)
			figures[i].allocs = float64(after.Mallocs-before.Mallocs) / ops
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

// calibrate returns how many operations of each goroutine fill a turn.
func calibrate(c contender, keys []string, procs int) int {
	for n := 1000; ; n *= 2 {
		if took := run(c, keys, procs, n); took > slice/4 {
			return int(float64(n) * float64(slice) / float64(took))
		}
	}
}

// run returns the wall time of n operations on each of procs goroutines.
func run(c contender, keys []string, procs, n int) time.Duration {
	var wait sync.WaitGroup
	begin := time.Now()
	for g := range procs {
		wait.Go(func() {
			i := g * len(keys) / procs
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

// median returns the median of v and a 95 % interval of it, which needs no
// assumption on how the values spread: of 15 measurements, the 4th and the 12th.
func median(v []float64) (mid, low, high float64) {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return v[n/2], v[n/2-4], v[n/2+4]
}

// ratios returns a's rounds over b's, round by round.
func ratios(a, b figure) []float64 {
	r := make([]float64, len(a.ns))
	for i := range r {
		r[i] = a.ns[i] / b.ns[i]
	}
	return r
}

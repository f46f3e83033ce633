package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

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

func (a addition) cells() []string {
	return []string{micros(a.nanoseconds), fmt.Sprintf("%.2f", a.ratio), fmt.Sprintf("%.2f–%.2f", a.low, a.high)}
}

// reaches says whether the ratio reaches a goal, and whether the rounds agree.
func (a addition) reaches(goal float64) string {
	switch {
	case math.IsInf(a.ratio, 1):
		return "lost in noise" // even the other added nothing
	case a.ratio > goal && a.low <= goal:
		return "missed by the median only"
	default:
		return judge(a.ratio, a.high, goal, 0)
	}
}

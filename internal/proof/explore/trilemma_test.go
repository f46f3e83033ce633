package explore_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// The trilemma: N nodes share a limit L of one window, and demand may fall on any
// of them. Δ is the most that is admitted beyond L, U the most that is refused
// although it was within L, and coordination is what the nodes send each other.
// Without any,
//
//	Δ + N·U ≥ (N−1)·L
//
// whatever budgets the nodes are given in advance. The code below tries all.

// A tradeoff is what some budgets cost in the worst case.
type tradeoff struct{ over, under int64 }

// admit returns what a node with some budget admits of some demand. It is a window
// of the production code, which nobody else is charged in.
func admit(budget, demand int64) int64 {
	if budget == 0 {
		return 0
	}
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: budget, Window: limiter.MinWindow}}}
	var s limiter.State
	var admitted int64
	for range demand {
		var res limiter.Result
		s, res = p.Step(s, epoch, limiter.Command{Min: 1, Want: 1})
		admitted += res.Granted
	}
	return admitted
}

// admissions is admit for budgets and demands up to the limit.
func admissions(limit int64) [][]int64 {
	table := make([][]int64, limit+1)
	for budget := range table {
		for demand := range limit + 1 {
			table[budget] = append(table[budget], admit(int64(budget), demand))
		}
	}
	return table
}

// vectors yields all vectors of n numbers from 0 to most. It reuses them.
func vectors(n int, most int64) iter.Seq[[]int64] {
	return func(yield func([]int64) bool) {
		v := make([]int64, n)
		for {
			if !yield(v) {
				return
			}
			i := 0
			for ; i < n && v[i] == most; i++ {
				v[i] = 0
			}
			if i == n {
				return
			}
			v[i]++
		}
	}
}

func sum(v []int64) int64 {
	var total int64
	for _, x := range v {
		total += x
	}
	return total
}

// worst tries all demands on nodes that have budgets and no coordination.
func worst(admitted [][]int64, budgets []int64, limit int64) tradeoff {
	var t tradeoff
	for demand := range vectors(len(budgets), limit) {
		var total int64
		for i, d := range demand {
			total += admitted[budgets[i]][d]
		}
		t.over = max(t.over, total-limit)
		t.under = max(t.under, min(sum(demand), limit)-total)
	}
	return t
}

// allocations yields all budgets up to the limit, of those that differ by the order
// of nodes one.
func allocations(n int, limit int64) iter.Seq[[]int64] {
	return func(yield func([]int64) bool) {
		for b := range vectors(n, limit) {
			if slices.IsSorted(b) && !yield(b) {
				return
			}
		}
	}
}

func TestNothingIsFreeWithoutCoordination(t *testing.T) {
	for _, tc := range []struct{ n, limit int64 }{{2, 4}, {3, 6}, {4, 8}} {
		t.Run(fmt.Sprintf("%d nodes, limit %d", tc.n, tc.limit), func(t *testing.T) {
			admitted, floor := admissions(tc.limit), (tc.n-1)*tc.limit
			least, exact, full := 2*floor, tc.limit, tc.n*tc.limit
			for b := range allocations(int(tc.n), tc.limit) {
				got := worst(admitted, b, tc.limit)
				if want := (tradeoff{max(0, sum(b)-tc.limit), tc.limit - slices.Min(b)}); got != want {
					t.Errorf("budgets %v: %+v, want %+v", b, got, want)
				}
				least = min(least, got.over+tc.n*got.under)
				if got.over == 0 {
					exact = min(exact, got.under)
				}
				if got.under == 0 {
					full = min(full, got.over)
				}
			}
			if least != floor {
				t.Errorf("the least Δ + N·U is %d, want %d", least, floor)
			}
			if want := tc.limit - tc.limit/tc.n; exact != want {
				t.Errorf("with Δ = 0 the least U is %d, want %d", exact, want)
			}
			if full != floor {
				t.Errorf("with U = 0 the least Δ is %d, want %d", full, floor)
			}
			t.Logf("Δ + N·U ≥ %d; Δ = 0 costs U = %d, U = 0 costs Δ = %d", least, exact, full)
		})
	}
}

// TestPoolingBuysOneNodeALink joins nodes to groups, each with one budget. Every
// link takes one node out of the bound.
func TestPoolingBuysOneNodeALink(t *testing.T) {
	const n, limit = 4, 4
	admitted := admissions(limit)
	floors := map[int64]int64{} // by links
	for group := range vectors(n, n-1) {
		groups := slices.Max(group) + 1
		if !firstSeenInOrder(group) {
			continue // the same partition by other names
		}
		for b := range vectors(int(groups), limit) {
			var got tradeoff
			for demand := range vectors(n, limit) {
				pooled := make([]int64, groups)
				for i, d := range demand {
					pooled[group[i]] = min(limit, pooled[group[i]]+d)
				}
				var total int64
				for i, d := range pooled {
					total += admitted[b[i]][d]
				}
				got.over = max(got.over, total-limit)
				got.under = max(got.under, min(sum(demand), limit)-total)
			}
			links := n - groups
			cost := got.over + groups*got.under
			if least, known := floors[links]; !known || cost < least {
				floors[links] = cost
			}
		}
	}
	for links, want := range map[int64]int64{0: 3 * limit, 1: 2 * limit, 2: limit, 3: 0} {
		if floors[links] != want {
			t.Errorf("with %d links the least Δ + (N−C)·U is %d, want %d", links, floors[links], want)
		}
	}
}

// firstSeenInOrder reports whether groups are numbered in the order in which they
// first appear.
func firstSeenInOrder(group []int64) bool {
	next := int64(0)
	for _, g := range group {
		if g > next {
			return false
		}
		if g == next {
			next++
		}
	}
	return true
}

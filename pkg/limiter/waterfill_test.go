package limiter_test

import (
	"math/big"
	"slices"
)

// waterFill returns the weighted max-min split of a budget over demands: the level
// λ is raised, and each gets min(demand, weight · λ), until the budget is spent or
// every demand met (Bertsekas and Gallager, Data Networks, 6.5.2). The remainder of
// rounding down goes to the unmet demands, one each, in order.
func waterFill(budget int64, weights, demands []int64) []int64 {
	got := make([]int64, len(demands))
	left, unmet := budget, indices(len(demands))
	for len(unmet) > 0 {
		var whole int64
		for _, i := range unmet {
			whole += weights[i]
		}
		met := slices.DeleteFunc(slices.Clone(unmet), func(i int) bool { // above the level
			return new(big.Int).Mul(big.NewInt(demands[i]), big.NewInt(whole)).
				Cmp(new(big.Int).Mul(big.NewInt(left), big.NewInt(weights[i]))) > 0
		})
		if len(met) == 0 {
			share := left
			for _, i := range unmet {
				got[i] = weights[i] * share / whole
				left -= got[i]
			}
			break
		}
		for _, i := range met {
			got[i] = demands[i]
			left -= demands[i]
		}
		unmet = slices.DeleteFunc(unmet, func(i int) bool { return slices.Contains(met, i) })
	}
	for _, i := range unmet {
		if left > 0 && got[i] < demands[i] {
			got[i]++
			left--
		}
	}
	return got
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

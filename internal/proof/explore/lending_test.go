package explore_test

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A lending is how a window is shared without overshoot: budgets in advance, and
// leases of one size from a common pool.
type lending struct {
	budgets []int64
	leases  int64
	size    int64
}

// A course is the demand up to now and what became of it.
type course struct {
	pool     limiter.State
	hands    []account.Balance
	demand   []int64
	admitted int64
}

// underUse lets demand come in any order and returns the most that is refused of
// what was within the limit, and the demands that do it. Leases and spending are
// the production code.
func (l lending) underUse(t *testing.T, limit int64) (int64, [][]int64) {
	t.Helper()
	pool := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: max(1, l.leases*l.size), Window: limiter.MinWindow}}}
	start := course{demand: make([]int64, len(l.budgets))}
	for _, b := range l.budgets {
		_, window := pool.Step(limiter.State{}, epoch, limiter.Command{Op: limiter.Peek, Min: 1, Want: 1})
		window.Granted = b
		start.hands = append(start.hands, account.Balance{Front: account.GrantOf(0, window)})
	}
	var most int64
	var demands [][]int64
	_, err := explore.Search(explore.Model[course, int]{
		Init: []course{start},
		Next: func(c course) iter.Seq2[int, course] {
			return func(yield func(int, course) bool) {
				for i := range l.budgets {
					if sum(c.demand) < limit && !yield(i, l.request(pool, c, i)) {
						return
					}
				}
			}
		},
		Encode: func(b []byte, c course) []byte {
			b = binary.AppendVarint(b, c.pool.Meters[0].Used)
			for i, h := range c.hands {
				b = binary.AppendVarint(binary.AppendVarint(b, h.Front.Credits), c.demand[i])
			}
			return binary.AppendVarint(b, c.admitted)
		},
		Check: func(c course) error {
			if c.admitted > limit {
				return fmt.Errorf("%d admitted of %d", c.admitted, limit)
			}
			return nil
		},
		Bound: 100_000,
	}, func(c course) {
		switch under := sum(c.demand) - c.admitted; {
		case under > most:
			most, demands = under, [][]int64{c.demand}
		case under == most:
			demands = append(demands, c.demand)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return most, demands
}

// request lets one request arrive at a node.
func (l lending) request(pool limiter.Params, c course, i int) course {
	c.hands, c.demand = slices.Clone(c.hands), slices.Clone(c.demand)
	c.demand[i]++
	hand, _, ok := c.hands[i].Spend(0, 1)
	if !ok && l.leases > 0 {
		var res limiter.Result
		c.pool, res = pool.Step(c.pool, epoch, limiter.Command{Min: l.size, Want: l.size})
		hand, _ = hand.Receive(0, account.GrantOf(0, res), false)
		hand, _, ok = hand.Spend(0, 1)
	}
	c.hands[i] = hand
	if ok {
		c.admitted++
	}
	return c
}

// best tries all budgets beside at most that many leases of the sizes, and returns
// the least that is refused in the worst case, and the least of even budgets.
func best(t *testing.T, n int, limit, leases int64, sizes ...int64) (least, even int64) {
	t.Helper()
	least, even = limit, limit
	for _, size := range sizes {
		for k := range leases + 1 {
			for b := range allocations(n, limit) {
				if sum(b)+k*size != limit {
					continue
				}
				under, _ := lending{slices.Clone(b), k, size}.underUse(t, limit)
				least = min(least, under)
				if b[0] == b[n-1] {
					even = min(even, under)
				}
			}
		}
	}
	return least, even
}

// TestLeasesBuyUtilization checks Δ + N·U ≥ (N−1)·(L − C·B) for at most C leases
// of B, with Δ = 0.
func TestLeasesBuyUtilization(t *testing.T) {
	for _, tc := range []struct {
		n             int
		limit, leases int64
		sizes         []int64
		want          int64 // the least U
	}{
		// No leases: the trilemma's corner.
		{2, 8, 0, []int64{1}, 4},
		{3, 9, 0, []int64{1}, 6},
		{4, 8, 0, []int64{1}, 6},
		// Leases of 1 meet the bound.
		{2, 8, 4, []int64{1}, 2},
		{3, 9, 3, []int64{1}, 4},
		{3, 9, 6, []int64{1}, 2},
		{3, 9, 9, []int64{1}, 0},
		// Leases of 3 do not: the bound is 4, 2, 0.
		{3, 9, 1, []int64{3}, 4},
		{3, 9, 2, []int64{3}, 4},
		{3, 9, 3, []int64{3}, 4},
		// Leases of at most 3 come closer, because leases of 2 strand less.
		{3, 9, 1, []int64{1, 2, 3}, 4},
		{3, 9, 2, []int64{1, 2, 3}, 4},
		{3, 9, 3, []int64{1, 2, 3}, 2},
	} {
		t.Run(fmt.Sprintf("%d nodes, limit %d, %d leases of %d", tc.n, tc.limit, tc.leases, tc.sizes), func(t *testing.T) {
			got, even := best(t, tc.n, tc.limit, tc.leases, tc.sizes...)
			if got != tc.want || even != tc.want {
				t.Errorf("the least U is %d, and %d with even budgets, want %d", got, even, tc.want)
			}
			if floor := int64(tc.n-1) * (tc.limit - tc.leases*slices.Max(tc.sizes)); int64(tc.n)*got < floor {
				t.Errorf("N·U is %d, below the bound %d", int64(tc.n)*got, floor)
			}
		})
	}
}

// TestLargeLeasesStrandCredits shows where two leases of 3 lose what the bound
// leaves room for: two nodes use one credit of a lease each.
func TestLargeLeasesStrandCredits(t *testing.T) {
	under, demands := lending{budgets: []int64{1, 1, 1}, leases: 2, size: 3}.underUse(t, 9)
	contains := slices.ContainsFunc(demands, func(d []int64) bool { return slices.Equal(d, []int64{2, 2, 5}) })
	if under != 4 || !contains {
		t.Errorf("at worst %d are refused, by the demands %v; want 4, by 2, 2, 5 among others", under, demands)
	}
}

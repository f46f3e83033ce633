package heap

import (
	"math"
	"slices"
	"testing"
)

// TestTheGoalIsLowerByWhatTheKernelKeeps beyond an eighth, in steps, and at least half.
func TestTheGoalIsLowerByWhatTheKernelKeeps(t *testing.T) {
	const most = 3200
	for _, tc := range []struct {
		most   int64
		beside []int64
		want   []int64
	}{
		{most, []int64{0, 400, 499}, nil},
		{most, []int64{500, 599, 401, 400}, []int64{3100, 3200}},
		{most, []int64{1000, 1000, 1050, 1100}, []int64{2600, 2500}},
		{most, []int64{5000, 6000, 0}, []int64{1600, 3200}},
		{math.MaxInt64, []int64{5000, 1 << 60}, nil},
	} {
		var got []int64
		g := newGoal(tc.most, func(n int64) int64 {
			got = append(got, n)
			return 0
		})
		for _, n := range tc.beside {
			g.Beside(n)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("of %d, beside %d: the goals were %d, want %d", tc.most, tc.beside, got, tc.want)
		}
	}
}

package adaptive

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestRollingIsTheMinimumOfTheLatest compares the deque with a search through the
// latest samples.
func TestRollingIsTheMinimumOfTheLatest(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 100} {
		t.Run(fmt.Sprintf("%d samples", n), func(t *testing.T) {
			rand := rand.New(rand.NewPCG(uint64(n), 0))
			b := newRolling(n)
			if got := b.min(); got != 0 {
				t.Fatalf("minimum of nothing is %d", got)
			}
			var all []limiter.Micros
			for range 5000 {
				sample := limiter.Micros(1 + rand.IntN(50))
				all = append(all, sample)
				b.observe(sample)
				if got, want := b.min(), slices.Min(all[max(0, len(all)-n):]); got != want {
					t.Fatalf("minimum after %d samples is %d, want %d", len(all), got, want)
				}
			}
		})
	}
}

package heap_test

import (
	"runtime/debug"
	"testing"

	"github.com/weir-dev/weir/internal/heap"
)

func TestTheEnvironmentTakesPrecedence(t *testing.T) {
	for _, tc := range []struct {
		gogc string
		want int
	}{{"", 321}, {"50", 100}} {
		t.Run("GOGC="+tc.gogc, func(t *testing.T) {
			before := debug.SetGCPercent(100)
			defer debug.SetGCPercent(before)
			limit := debug.SetMemoryLimit(-1)
			defer debug.SetMemoryLimit(limit)
			t.Setenv("GOGC", tc.gogc)
			if err := heap.Fit(321, 0.5); err != nil {
				t.Fatal(err)
			}
			if got := debug.SetGCPercent(100); got != tc.want {
				t.Errorf("the heap grows by %d %%, want %d", got, tc.want)
			}
		})
	}
}

func TestALimitThatTheEnvironmentSetsStays(t *testing.T) {
	before := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(before)
	percent := debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	t.Setenv("GOMEMLIMIT", "1GiB")
	if err := heap.Fit(100, 0.5); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetMemoryLimit(-1); got != 1<<30 {
		t.Errorf("the limit is %d, want what the environment says", got)
	}
}

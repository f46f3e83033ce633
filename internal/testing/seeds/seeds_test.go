package seeds_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/seeds"
)

func TestEveryTestHasAWorld(t *testing.T) {
	for n := range 9 {
		if got := seeds.Of(n); got > n || n > 0 && got == 0 {
			t.Errorf("of %d worlds a test plays in %d", n, got)
		}
	}
	t.Setenv("WEIR_ALL_SEEDS", "1")
	if got := seeds.Of(uint64(9)); got != 9 {
		t.Errorf("of all 9 worlds a test plays in %d", got)
	}
}

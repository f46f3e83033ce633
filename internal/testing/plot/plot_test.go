package plot

import "testing"

func TestTicksAreRound(t *testing.T) {
	for _, top := range []float64{1, 7, 48, 93, 120, 999, 2600} {
		ticks := axis{to: top}.ticks()
		if len(ticks) < 3 || len(ticks) > 8 {
			t.Errorf("ticks to %v are %v", top, ticks)
		}
	}
}

package adaptive

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestBaselineIsKeptWhenResized covers every way a baseline can be counted.
func TestBaselineIsKeptWhenResized(t *testing.T) {
	measured := Config{Baseline: Baseline{Type: Measured}}
	rolling := func(samples int) Config { return Config{Baseline: Baseline{Type: Rolling, Samples: samples}} }
	for name, tc := range map[string]struct {
		from, to Config
		want     limiter.Micros
	}{
		"more samples":         {rolling(5), rolling(50), 7},
		"fewer samples":        {rolling(5), rolling(1), 7},
		"measured from now on": {rolling(5), measured, 7},
		"measured as before":   {measured, measured, 8},
		"rolling from now on":  {measured, rolling(5), 8},
		"none any more":        {measured, Config{Algorithm: Fixed}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var b baseline
			b.resize(tc.from)
			for _, sample := range []limiter.Micros{9, 7, 8} {
				b.observe(0, sample)
			}
			b.resize(tc.to)
			if got := b.latency(); got != tc.want {
				t.Errorf("baseline is %d, want %d", got, tc.want)
			}
		})
	}
}

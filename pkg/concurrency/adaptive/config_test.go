package adaptive_test

import (
	"math"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
)

// TestValidateNamesTheField checks what is refused.
func TestValidateNamesTheField(t *testing.T) {
	edit := func(f func(*adaptive.Config)) adaptive.Config {
		c := gradient
		f(&c)
		return c
	}
	for name, tc := range map[string]struct {
		config adaptive.Config
		want   string // empty when it is valid
	}{
		"Gradient2":              {gradient, ""},
		"AIMD":                   {aimd(), ""},
		"Fixed":                  {adaptive.Config{Algorithm: adaptive.Fixed, Max: 1}, ""},
		"an unknown algorithm":   {adaptive.Config{Algorithm: 9}, "algorithm is 9, which is unknown"},
		"Fixed at nothing":       {adaptive.Config{Algorithm: adaptive.Fixed}, "max is 0, below 1"},
		"min of nothing":         {edit(func(c *adaptive.Config) { c.Min = 0 }), "min is 0, outside 1 to max, which is 512"},
		"min over max":           {edit(func(c *adaptive.Config) { c.Min, c.Initial = 600, 512 }), "min is 600, outside 1 to max, which is 512\ninitial is 512, outside min to max, which are 600 and 512"},
		"initial over max":       {edit(func(c *adaptive.Config) { c.Initial = 513 }), "initial is 513, outside min to max, which are 1 and 512"},
		"tolerance below 1":      {edit(func(c *adaptive.Config) { c.Tolerance = 0.9 }), "tolerance is 0.9, below 1"},
		"tolerance not a number": {edit(func(c *adaptive.Config) { c.Tolerance = math.NaN() }), "tolerance is NaN, below 1"},
		"no smoothing":           {edit(func(c *adaptive.Config) { c.Smoothing = 0 }), "smoothing is 0, outside over 0 to 1"},
		"backoff of nothing":     {edit(func(c *adaptive.Config) { c.Algorithm, c.Backoff = adaptive.AIMD, 1 }), "backoff is 1, outside 0.5 to less than 1"},
		"no baseline samples":    {edit(func(c *adaptive.Config) { c.Baseline = adaptive.Baseline{Type: adaptive.Rolling} }), "baseline samples is 0, below 1"},
		"an unknown baseline":    {edit(func(c *adaptive.Config) { c.Baseline.Type = 9 }), "baseline type is 9, which is unknown"},
		"no interval":            {edit(func(c *adaptive.Config) { c.Baseline.Interval = 9 }), "baseline interval is 9µs, below 10µs"},
		"no probe limit":         {edit(func(c *adaptive.Config) { c.Baseline.ProbeLimit = -1 }), "baseline probeLimit is -1, below 0"},
		"no probe samples":       {edit(func(c *adaptive.Config) { c.Baseline.ProbeSamples = 0 }), "baseline probeSamples is 0, below 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.config.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("error is %q, want %q", got, tc.want)
			}
		})
	}
}

package twotier

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestNewRefusesWhatItCannotServe changes one field of a valid configuration at a time.
func TestNewRefusesWhatItCannotServe(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no rates":                {func(c *Config) { c.Params.Rates = nil }, "Params: a limit has 1 to"},
		"an override without any": {func(c *Config) { c.Overrides = map[string]limiter.Params{"a": {}} }, `Overrides["a"]: a limit has 1 to`},
		"a mode":                  {func(c *Config) { c.Mode = Strict + 1 }, "Mode is 3, want Leased, CachedDeny or Strict"},
		"a type of sizes":         {func(c *Config) { c.Size.Type = Predictive + 1 }, "Size.Type is 3, want Fixed, Adaptive or Predictive"},
		"sizes without any":       {func(c *Config) { c.Size.Min, c.Size.Max = 5, 4 }, "Size.Max is 4, want 0 or at least Size.Min"},
		"an expiry":               {func(c *Config) { c.Expiry = CarryOver + 1 }, "Expiry is 2, want Coupled or CarryOver"},
		"a failure action":        {func(c *Config) { c.OnUnavailable = Deny + 1 }, "OnUnavailable is 3, want LocalShare, Allow or Deny"},
		"a low water":             {func(c *Config) { c.LowWater = -1 }, "LowWater is -1, want at least 0"},
		"an idle time":            {func(c *Config) { c.ReturnIdleAfter = -time.Second }, "ReturnIdleAfter is -1s, want at least 0"},
		"a number of keys":        {func(c *Config) { c.MaxKeys = -1 }, "MaxKeys is -1, want at least 0"},
		"a number of shared keys": {func(c *Config) { c.SharedKeys = -1 }, "SharedKeys is -1, want at least 0"},
		"a time-out":              {func(c *Config) { c.Timeout = -time.Second }, "Timeout is -1s, want at least 0"},
		"a number of holders":     {func(c *Config) { c.Holders = -1 }, "Holders is -1, want at least 0"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := perSecond(100, 10)
			tc.change(&cfg)
			if _, err := New(cfg, newFakeStore()); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("New returns %v, want an error that begins with %q", err, tc.want)
			}
		})
	}
}

package concurrency

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestConfigThatCannotBeWorkedByIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		names  string
	}{
		"no holder":                        {func(c *Config) { c.Holder = "" }, "holder"},
		"no interval":                      {func(c *Config) { c.Heartbeat.Interval = 0 }, "interval"},
		"no least interval":                {func(c *Config) { c.Heartbeat.MinInterval = 0 }, "minInterval"},
		"a least interval above the other": {func(c *Config) { c.Heartbeat.MinInterval = 2 * time.Second }, "minInterval"},
		"shares as short as the interval":  {func(c *Config) { c.Params.TTL = limiter.Second }, "leaseTTL"},
		"a negative margin":                {func(c *Config) { c.Margin = -1 }, "margin"},
		"a margin that leaves no time":     {func(c *Config) { c.Margin = time.Second }, "margin"},
		"an unknown fence action":          {func(c *Config) { c.OnFenced = 9 }, "onFenced"},
		"an unknown outage action":         {func(c *Config) { c.OnOutage = 9 }, "onOutage"},
		"a law that learns nothing":        {func(c *Config) { c.Law.Max = 0 }, "max"},
		"a queue in which nobody may wait": {func(c *Config) { c.Slots.Queue.MaxLength = 1 }, "maxWait"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fixed("a", 8)
			if err := c.Validate(); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			tc.change(&c)
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tc.names) {
				t.Errorf("error %v, want one that names %s", err, tc.names)
			}
		})
	}
}

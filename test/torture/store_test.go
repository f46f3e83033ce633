package main

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/clock"
)

func TestWhenAClockHasCaughtUp(t *testing.T) {
	set := func(second float64, offset time.Duration) clock.Era {
		return clock.Era{From: at(second), Offset: offset}
	}
	for name, c := range map[string]struct {
		eras []clock.Era
		want float64
	}{
		"never set":                {[]clock.Era{set(1, time.Hour)}, 1},
		"forward":                  {[]clock.Era{set(1, 0), set(10, time.Minute)}, 10},
		"back":                     {[]clock.Era{set(1, 0), set(10, -time.Minute)}, 130},
		"back, and partly forward": {[]clock.Era{set(1, 0), set(10, -time.Minute), set(20, -20*time.Second)}, 90},
		"back twice":               {[]clock.Era{set(1, 0), set(10, -time.Minute), set(20, -90*time.Second)}, 160},
		"back, forward and back":   {[]clock.Era{set(1, 0), set(10, time.Minute), set(20, 0)}, 140},
	} {
		t.Run(name, func(t *testing.T) {
			if got := caughtUp(c.eras); got.Sub(at(c.want)).Abs() > time.Millisecond {
				t.Errorf("after %s, want %vs", got.Sub(at(0)), c.want)
			}
		})
	}
}

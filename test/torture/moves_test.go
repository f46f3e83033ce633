package main

import (
	"testing"
	"time"
)

// moved is a policy that was moved at 12.5 from a Redis whose clock is right to a store
// whose clock is 2 s ahead. The first window that the new store serves begins at 13.
func moved() *shop {
	known := func(number int, off time.Duration) *store {
		var c askedClock
		c.note(1, at(0), at(0), at(0).Add(off))
		return &store{number: number, asked: &c}
	}
	from, to := known(0, 0), known(1, 2*time.Second)
	from.isRedis = true
	return &shop{
		terms: short("shop"), stores: []*store{from, to},
		seats: []seat{{store: from}, {store: to, looked: at(12.2), seen: at(12.7), from: at(14.5)}},
	}
}

func TestAMoveHoldsBothLimits(t *testing.T) {
	for name, c := range map[string]struct {
		arrivals []arrival
		starts   float64 // when a sidecar restarted; 0 when none did
		over     int64
	}{
		"each in its windows":                    {join(arrivals(10, 11, 0), arrivals(10, 13.5, 0), arrivals(10, 18.5, 0)), 0, 0},
		"one too many of the old store":          {join(arrivals(11, 11, 0), arrivals(10, 13.5, 0)), 0, 1},
		"one too many of the new store":          {join(arrivals(10, 11, 0), arrivals(11, 13.5, 0)), 0, 1},
		"one after every pod let go of the old":  {join(arrivals(9, 11, 0), arrivals(1, 12.8, 0)), 0, 1},
		"one that was under way then":            {join(arrivals(9, 11, 0), arrivals(1, 12.4, 0.5)), 0, 0},
		"the old store goes on beside the new":   {join(arrivals(10, 13.5, 0), arrivals(10, 15.5, 0)), 0, 10},
		"to a sidecar that restarted":            {join(arrivals(10, 13.5, 0), arrivals(10, 15.5, 0)), 15, 0},
		"but not more than its limit":            {join(arrivals(10, 13.5, 0), arrivals(11, 15.5, 0)), 15, 1},
		"nor to one that began before the move":  {join(arrivals(10, 13.5, 0), arrivals(10, 15.5, 0)), 11, 10},
		"a window of both is not of the old one": {join(arrivals(10, 13.5, 0), arrivals(1, 14, 0)), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := moved()
			if c.starts > 0 {
				s.starts = []time.Time{at(c.starts)}
			}
			j := judgement{window: windowOfTest, eras: s.eras(), limit: func(windowID) int64 { return 10 }}
			if got := j.of(c.arrivals); got.over != c.over {
				t.Errorf("%d over, want %d: %+v", got.over, c.over, got)
			}
		})
	}
}

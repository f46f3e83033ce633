package main

import (
	"testing"
	"time"
)

const windowOfTest = 5 * time.Second

var zero = time.Unix(1_000_000, 0) // the start of a window by a right clock

func at(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }

// off is an era whose clock is off by an offset.
func off(from, until, offset float64) era {
	by := time.Duration(offset * float64(time.Second))
	return era{from: at(from), until: at(until), shows: func(t time.Time) time.Time { return t.Add(by) }}
}

// arrivals returns n that were sent at an instant and took a time.
func arrivals(n int, sent, took float64) []arrival {
	all := make([]arrival, n)
	for i := range all {
		all[i] = arrival{at(sent), at(sent + took)}
	}
	return all
}

func join(all ...[]arrival) (joined []arrival) {
	for _, a := range all {
		joined = append(joined, a...)
	}
	return joined
}

func TestJudgement(t *testing.T) {
	always := []era{off(-100, 1000, 0)}
	// At 12 the clock is set back by 7: windows 0 and 1 (of 0 to 10) are shown again.
	back := []era{off(-100, 12, 0), off(12, 1000, -7)}
	// At 2 it is set forward by 60.
	forth := []era{off(-100, 2, 0), off(2, 1000, 60)}
	for name, c := range map[string]struct {
		eras     []era
		arrivals []arrival
		over     int64
	}{
		"the limit in each window":                        {always, join(arrivals(10, 1, 0), arrivals(10, 6, 0)), 0},
		"one too many":                                    {always, join(arrivals(10, 1, 0), arrivals(11, 6, 0)), 1},
		"late arrivals belong to the window before":       {always, join(arrivals(9, 1, 0), arrivals(1, 4.99, 0.1), arrivals(10, 6, 0)), 0},
		"but only as far as there is room":                {always, join(arrivals(10, 1, 0), arrivals(1, 4.99, 0.1), arrivals(10, 6, 0)), 1},
		"a request that takes two windows":                {always, join(arrivals(10, 1, 0), arrivals(10, 6, 0), arrivals(10, 3, 8)), 0},
		"one that takes three has no room in the fourth":  {always, join(arrivals(10, 1, 0), arrivals(10, 6, 0), arrivals(10, 11, 0), arrivals(1, 3, 8)), 1},
		"others make room":                                {always, join(arrivals(10, 4.9, 0.2), arrivals(10, 9.9, 0.2), arrivals(10, 14.9, 0.2), arrivals(10, 16, 0)), 0},
		"but not without end":                             {always, join(arrivals(11, 4.9, 0.2), arrivals(10, 9.9, 0.2), arrivals(10, 14.9, 0.2), arrivals(10, 16, 0), arrivals(10, 1, 0)), 11},
		"a window that is shown again has its limit once": {back, join(arrivals(10, 6, 0), arrivals(1, 16, 0)), 1},
		"what was left of it may be used":                 {back, join(arrivals(9, 6, 0), arrivals(1, 16, 0)), 0},
		"the window that was open is spent to its end":    {back, join(arrivals(10, 6, 0), arrivals(10, 13, 0)), 0},
		"not beyond its end":                              {back, join(arrivals(10, 6, 0), arrivals(10, 15.1, 0)), 10},
		"not twice":                                       {back, join(arrivals(10, 6, 0), arrivals(5, 11, 0), arrivals(6, 13, 0)), 1},
		"both windows of a clock that is set forward":     {forth, join(arrivals(5, 1, 0), arrivals(15, 3, 0)), 0},
		"one too many for both":                           {forth, join(arrivals(5, 1, 0), arrivals(10, 3, 0), arrivals(10, 4.9, 0)), 5},
		"no window at all":                                {[]era{off(10, 20, 0)}, arrivals(1, 1, 1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			j := judgement{window: windowOfTest, eras: c.eras, limit: func(windowID) int64 { return 10 }}
			if got := j.of(c.arrivals); got.over != c.over {
				t.Errorf("%d over, want %d: %+v", got.over, c.over, got)
			}
		})
	}
}

// A sidecar that is cut off from the store does not learn that its clock was set.
func TestACutOffSidecarGoesByTheClockAsItWas(t *testing.T) {
	// At 12 the clock is set back by 7; at 18 it shows the second window again, and would
	// have shown the fourth.
	eras := []era{off(-100, 12, 0), off(12, 1000, -7)}
	all := join(arrivals(10, 6, 0), arrivals(10, 16, 0))
	for stale, over := range map[time.Duration]int64{0: 10, 3 * time.Second: 10, 5 * time.Second: 0} {
		j := judgement{window: windowOfTest, eras: eras, stale: stale, limit: func(windowID) int64 { return 10 }}
		if got := j.of(all); got.over != over {
			t.Errorf("for %s: %d over, want %d: %+v", stale, got.over, over, got)
		}
	}
}

func TestCertainAndUncertainJudgements(t *testing.T) {
	j := judgement{window: windowOfTest, eras: []era{off(-100, 100, 0)}, limit: func(windowID) int64 { return 10 }}
	v := j.of(join(arrivals(3, 1, 0), arrivals(2, 4.9, 0.2)))
	first, second := windowID{index: j.index(zero)}, windowID{index: j.index(zero) + 1}
	if v.least[first] != 3 || v.most[first] != 5 || v.least[second] != 0 || v.most[second] != 2 {
		t.Errorf("least %v, most %v", v.least, v.most)
	}
	j.guessed = 300 * time.Millisecond
	if v := j.of(join(arrivals(3, 1, 0), arrivals(2, 4.8, 0))); v.least[first] != 3 || v.most[first] != 5 || v.most[second] != 2 {
		t.Errorf("of sidecars that guess: least %v, most %v", v.least, v.most)
	}
}

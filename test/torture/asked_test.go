package main

import (
	"testing"
	"time"
)

func TestAnAskedClock(t *testing.T) {
	var c askedClock
	answer := func(number, second float64, took, off time.Duration) {
		before := at(second)
		c.note(number, before, before.Add(took), before.Add(took/2+off))
	}
	answer(1, 0, 20*time.Millisecond, time.Minute)
	answer(1, 1, 4*time.Millisecond, time.Minute)
	answer(1, 2, 20*time.Millisecond, time.Minute)
	answer(2, 5, 4*time.Millisecond, -time.Minute) // the next leader
	answer(2, 6, 4*time.Millisecond, -time.Minute)

	eras := c.eras()
	if len(eras) != 2 {
		t.Fatalf("%d eras, want one of each leader", len(eras))
	}
	for i, want := range []time.Duration{time.Minute, -time.Minute} {
		if off := eras[i].shows(at(3)).Sub(at(3)); (off - want).Abs() > 5*time.Millisecond {
			t.Errorf("the clock of leader %d is off by %s, want %s", i, off, want)
		}
	}
	// It is not known when the second began to lead, and the first stopped.
	if !eras[0].until.Equal(at(5)) || eras[1].from.After(at(2.1)) {
		t.Errorf("the first ends at %s, the second begins at %s", eras[0].until, eras[1].from)
	}
}

package monotonic

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClockCountsTheTimeOfASuspension(t *testing.T) {
	for name, tc := range map[string]struct {
		suspended, want time.Duration
	}{
		"a suspension":               {2 * time.Second, 2 * time.Second},
		"one of a millisecond":       {time.Millisecond, time.Millisecond},
		"readings that wander apart": {900 * time.Microsecond, 0},
		"readings that wander back":  {-time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slept atomic.Int64
				c := New(func() time.Duration { return time.Hour + time.Duration(slept.Load()) })
				var jumps atomic.Int64
				stop := c.Watch(func() { jumps.Add(1) })
				defer stop()
				before, began := c.Now(), time.Now()
				slept.Add(int64(tc.suspended))
				for range 3 {
					time.Sleep(WatchInterval)
					synctest.Wait()
				}
				if got := time.Duration(c.Now()-before) - time.Since(began); got != tc.want {
					t.Errorf("the clock moved by %v more, want %v", got, tc.want)
				}
				if called := jumps.Load() > 0; called != (tc.want > 0) || jumps.Load() > 1 {
					t.Errorf("called %d times after a jump of %v", jumps.Load(), tc.want)
				}
			})
		})
	}
}

func TestClockSuspendedAgainMovesByTheSecondOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		c := New(func() time.Duration { return time.Duration(slept.Load()) })
		defer c.Watch(nil)()
		before, began := c.Now(), time.Now()
		for range 5 {
			slept.Add(int64(time.Second))
			time.Sleep(2 * WatchInterval)
		}
		synctest.Wait()
		if got := time.Duration(c.Now()-before) - time.Since(began); got != 5*time.Second {
			t.Errorf("the clock moved by %v more in 5 suspensions of a second", got)
		}
	})
}

func TestClocksOfARunningMachineDoNotPart(t *testing.T) {
	before := suspended()
	if got := suspended() - before; got > time.Millisecond || got < -time.Millisecond {
		t.Errorf("the machine seems suspended for %v", got)
	}
}

func TestWatchdogRunsWhileAnybodyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(func() time.Duration { return 0 })
		a, b := c.Watch(nil), c.Watch(nil)
		first := c.patrol
		a()
		select {
		case <-first.done:
			t.Error("the watchdog ended with somebody still watching")
		default:
		}
		b()
		<-first.done
		stop := c.Watch(nil)
		if c.patrol == nil || c.patrol == first {
			t.Error("no watchdog runs for who came later")
		}
		stop()
	})
}

func TestZeroClockHasNoWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		stop := c.Watch(nil)
		before := c.Now()
		c.Skip(time.Hour)
		if got := time.Duration(c.Now() - before); got != time.Hour {
			t.Errorf("the clock moved by %v, want an hour", got)
		}
		stop()
	})
}

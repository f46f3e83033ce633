package twotier

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// suspend makes the clock's watchdog believe in a suspension when add is called.
func suspend(t *testing.T, c *clock) (add func(time.Duration)) {
	var slept atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go c.watch(func() time.Duration { return time.Hour + time.Duration(slept.Load()) }, stop, done)
	t.Cleanup(func() { close(stop); <-done })
	synctest.Wait() // it knows how long the machine was suspended before
	c.users = 1     // the limiter need not start another
	return func(d time.Duration) { slept.Add(int64(d)) }
}

func TestCreditsDieInASuspendedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newFakeStore(), &clock{}
		add := suspend(t, c)
		l := openWith(t, perSecond(1000, 10), s, c)
		acquire(t, l, "", 1)
		add(2 * time.Second)
		s.set(func() { s.ahead += 2 * time.Second })
		time.Sleep(watchInterval + time.Millisecond)
		if d := acquire(t, l, "", 1); d.Windows.Open[0].Index != window(s) {
			t.Errorf("charged to window %d in window %d", d.Windows.Open[0].Index, window(s))
		}
	})
}

func TestReplyUnderWayInASuspendedMachineIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newFakeStore(), &clock{}
		add := suspend(t, c)
		cfg := perSecond(1000, 10)
		cfg.Timeout = time.Second
		l := openWith(t, cfg, s, c)
		s.back = constant(50 * time.Millisecond)
		done := make(chan Decision)
		go func() {
			d, _ := l.Acquire(t.Context(), Request{Value: "", Cost: 1})
			done <- d
		}()
		synctest.Wait()
		add(2 * time.Second)
		s.set(func() { s.ahead += 2 * time.Second })
		if d := <-done; !d.Allowed || d.Windows.Open[0].Index != window(s) {
			t.Errorf("allowed %v, charged to window %d in window %d", d.Allowed, d.Windows.Open[0].Index, window(s))
		}
	})
}

func TestShortSuspensionLeavesValidCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newFakeStore(), &clock{}
		add := suspend(t, c)
		l := openWith(t, perSecond(1000, 10), s, c)
		acquire(t, l, "", 1)
		add(300 * time.Millisecond)
		time.Sleep(watchInterval + time.Millisecond)
		acquire(t, l, "", 1)
		if got := len(s.commands); got != 1 {
			t.Errorf("%d store calls, want 1: the window is still open", got)
		}
	})
}

func TestClocksOfARunningMachineDoNotPart(t *testing.T) {
	before := suspended()
	if got := suspended() - before; got > time.Millisecond || got < -time.Millisecond {
		t.Errorf("the machine seems suspended for %v", got)
	}
}

func TestWatchdogRunsWhileAnyLimiterIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		a := New(perSecond(1, 1), newGate(newFakeStore(), &c))
		b := New(perSecond(1, 1), newGate(newFakeStore(), &c))
		a.Close(t.Context())
		select {
		case <-c.done:
			t.Error("the watchdog ended with a limiter still open")
		default:
		}
		b.Close(t.Context())
		<-c.done
	})
}

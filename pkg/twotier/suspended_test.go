package twotier

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/monotonic"
)

// suspendable returns the clock of a machine that is suspended when add is called.
func suspendable() (c *clock, add func(time.Duration)) {
	var slept atomic.Int64
	machine := monotonic.New(func() time.Duration { return time.Hour + time.Duration(slept.Load()) })
	return &clock{Clock: machine}, func(d time.Duration) { slept.Add(int64(d)) }
}

func TestCreditsDieInASuspendedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		c, add := suspendable()
		l := openWith(t, perSecond(1000, 10), s, c)
		acquire(t, l, "", 1)
		add(2 * time.Second)
		s.set(func() { s.ahead += 2 * time.Second })
		time.Sleep(monotonic.WatchInterval + time.Millisecond)
		if d := acquire(t, l, "", 1); d.Windows.Open[0].Index != window(s) {
			t.Errorf("charged to window %d in window %d", d.Windows.Open[0].Index, window(s))
		}
	})
}

func TestReplyUnderWayInASuspendedMachineIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		c, add := suspendable()
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
		s := newFakeStore()
		c, add := suspendable()
		l := openWith(t, perSecond(1000, 10), s, c)
		acquire(t, l, "", 1)
		add(300 * time.Millisecond)
		time.Sleep(monotonic.WatchInterval + time.Millisecond)
		acquire(t, l, "", 1)
		if got := len(s.commands); got != 1 {
			t.Errorf("%d store calls, want 1: the window is still open", got)
		}
	})
}

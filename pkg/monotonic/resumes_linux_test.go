package monotonic

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestListeningClockHearsOfAJump sets the clock of the day by a millisecond, which the
// kernel reports in the same way as a resume, on machines that let it.
func TestListeningClockHearsOfAJump(t *testing.T) {
	var slept atomic.Int64
	c := New(func() time.Duration { return time.Duration(slept.Load()) })
	stop, err := c.Listen()
	if err != nil {
		t.Skipf("this kernel does not report resumes: %v", err)
	}
	defer stop()
	jumped := make(chan struct{})
	defer c.Watch(func() { close(jumped) })()
	if c.patrol != nil {
		t.Error("a watchdog looks although the kernel reports nothing")
	}
	slept.Add(int64(time.Second))
	if err := stepClock(time.Millisecond); err != nil {
		t.Skipf("this machine's clock may not be set: %v", err)
	}
	defer func() { _ = stepClock(-time.Millisecond) }()
	<-jumped
	if got := time.Duration(c.slept.Load()); got != time.Second {
		t.Errorf("the clock moved by %v, want a second", got)
	}
}

// TestWatchdogLooksAgainWhenNobodyListens goes from listening to looking, and back.
func TestWatchdogLooksAgainWhenNobodyListens(t *testing.T) {
	c := New(func() time.Duration { return 0 })
	defer c.Watch(nil)()
	for range 2 {
		first := c.patrol
		if first == nil {
			t.Fatal("nobody looks")
		}
		stop, err := c.Listen()
		if err != nil {
			t.Skipf("this kernel does not report resumes: %v", err)
		}
		<-first.done
		stop()
	}
}

// stepClock sets the clock of the day forward by d.
func stepClock(d time.Duration) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return err
	}
	next := unix.NsecToTimespec(now.Nano() + int64(d))
	return unix.ClockSettime(unix.CLOCK_REALTIME, &next)
}

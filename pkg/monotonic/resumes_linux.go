package monotonic

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// resumes is a timer that never fires. The kernel cancels the wait for it when the
// clock of the day jumps, which it does when the machine resumes: that clock goes on
// meanwhile and the monotonic one does not. See TFD_TIMER_CANCEL_ON_SET in
// timerfd_create(2).
type resumes struct{ timer *os.File }

func listen() (*resumes, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create a timer: %w", err)
	}
	never := unix.ItimerSpec{Value: unix.Timespec{Sec: math.MaxInt64}}
	err = unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil)
	if err != nil && !errors.Is(err, unix.ECANCELED) { // it is set, and the clock jumped meanwhile
		return nil, errors.Join(fmt.Errorf("set a timer that jumps of the clock cancel: %w", err), unix.Close(fd))
	}
	return &resumes{os.NewFile(uintptr(fd), "timerfd")}, nil
}

// await returns true when the machine may have resumed, and false when r is closed.
func (r *resumes) await() bool {
	_, err := r.timer.Read(make([]byte, 8))
	if errors.Is(err, os.ErrClosed) {
		return false
	}
	if !errors.Is(err, unix.ECANCELED) {
		panic(err) // deadlines would come too late from now on
	}
	return true
}

func (r *resumes) close() { _ = r.timer.Close() }

//go:build race

package socket

import (
	"errors"
	"syscall"
)

// receive reads once. none says that nothing has come. It and send are the calls of package syscall, by which
// the race detector sees that what is sent happens before it is received.
func receive(fd uintptr, p []byte) (n int, none bool, err error) {
	return done(func() (int, error) { return syscall.Read(int(fd), p) })
}

// send writes once. none says that nothing is taken now.
func send(fd uintptr, p []byte) (n int, none bool, err error) {
	return done(func() (int, error) { return syscall.Write(int(fd), p) })
}

// done makes a call on a socket that does not block.
func done(call func() (int, error)) (n int, none bool, err error) {
	for {
		n, err = call()
		switch {
		case err == nil:
			return n, false, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, true, nil
		default:
			return 0, false, err
		}
	}
}

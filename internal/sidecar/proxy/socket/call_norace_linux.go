//go:build !race

package socket

import "syscall"

// receive reads once. none says that nothing has come.
func receive(fd uintptr, p []byte) (n int, none bool, err error) {
	return call(syscall.SYS_RECVFROM, fd, p, syscall.MSG_DONTWAIT)
}

// send writes once. none says that nothing is taken now. A peer that is gone is an error, and no
// signal.
func send(fd uintptr, p []byte) (n int, none bool, err error) {
	return call(syscall.SYS_SENDTO, fd, p, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
}

//go:build unix && !linux

package socket

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// silent reports whether c is open and the peer has said nothing that is left to read. It takes
// nothing away from what reads from c.
func silent(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	failed := raw.Control(func(fd uintptr) {
		var next [1]byte
		_, _, err = unix.Recvfrom(int(fd), next[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return failed == nil && errors.Is(err, unix.EAGAIN)
}

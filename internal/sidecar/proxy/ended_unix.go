//go:build unix

package proxy

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ended reports whether the peer has closed c or broken it off, and nothing that it said
// before is left to read. It takes nothing away from whoever reads.
func ended(c net.Conn) (over bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	// Not Read, which would wait for the reader that waits for the answer.
	err = raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := unix.Recvfrom(int(fd), next[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		over = err == nil && n == 0 || errors.Is(err, unix.ECONNRESET)
	})
	return err == nil && over
}

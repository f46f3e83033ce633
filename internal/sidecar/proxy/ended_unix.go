//go:build unix

package proxy

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ended reports whether the peer has closed c or broken it off, and nothing that it said
// before is left to read.
func ended(c net.Conn) bool {
	n, err := peek(c)
	return err == nil && n == 0 || errors.Is(err, unix.ECONNRESET)
}

// silent reports whether c is open and the peer has said nothing that is left to read.
func silent(c net.Conn) bool {
	_, err := peek(c)
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, errors.ErrUnsupported)
}

// peek looks at what comes next over c, and takes nothing away from its reader. It does
// not use Read, which would wait for the reader that waits for the answer.
func peek(c net.Conn) (n int, err error) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, err //nolint:wrapcheck // only looked at
	}
	failed := raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err = unix.Recvfrom(int(fd), next[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	if failed != nil {
		return 0, failed //nolint:wrapcheck // only looked at
	}
	return n, err
}

package framing

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// canSeeReset reports whether isReset works for c.
func canSeeReset(c net.Conn) bool {
	_, ok := c.(syscall.Conn)
	return ok
}

// unread reports whether something has come over c that was not read.
func unread(c net.Conn) (some bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ)
		some = err == nil && n > 0
	})
	return some
}

// isReset reports whether the peer has reset c. Reads do not report that after the end
// of the data that the peer sent.
func isReset(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true // it is closed
	}
	reset := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		reset = err == nil && info.State == unix.BPF_TCP_CLOSE
	})
	return reset || err != nil
}

// canAwait reports whether await works for c.
func canAwait(c net.Conn) bool { return canSeeReset(c) }

// await waits until something can be read from c. It returns false where the peer has ended the
// connection, the deadline of reads has passed, or c was closed. It needs little stack: there
// is one for each connection that is idle.
func await(c net.Conn) (some bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false // it is closed
	}
	_ = raw.Read(func(fd uintptr) bool {
		var first [1]byte
		n, _, err := unix.Recvfrom(int(fd), first[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		some = n > 0
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	return some
}

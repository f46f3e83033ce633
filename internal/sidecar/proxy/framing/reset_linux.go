package framing

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	sockets "github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

// CanWatch reports whether IsReset and await work for c.
func CanWatch(c net.Conn) bool {
	_, ok := c.(syscall.Conn)
	return ok
}

// Unread reports whether something has come over c that was not read.
func Unread(c net.Conn) (some bool) {
	raw := sockets.RawOf(c)
	if raw == nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ)
		some = err == nil && n > 0
	})
	return some
}

// IsReset reports whether the peer has reset c. Reads do not report that after the end
// of the data that the peer sent. A connection that is closed counts as reset.
func IsReset(c net.Conn) bool {
	raw := sockets.RawOf(c)
	if raw == nil {
		return true
	}
	reset := false
	err := raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		reset = err == nil && info.State == unix.BPF_TCP_CLOSE
	})
	return reset || err != nil
}

// await waits until something can be read from c. It returns false where the peer has ended the
// connection, the deadline of reads has passed, or c was closed. It needs little stack: there
// is one for each connection that is idle.
func await(c net.Conn) (some bool) {
	raw := sockets.RawOf(c)
	if raw == nil {
		return false
	}
	_ = raw.Read(func(fd uintptr) bool {
		var first [1]byte
		n, _, err := unix.Recvfrom(int(fd), first[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		some = n > 0
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	return some
}

package membudget

import (
	"errors"
	"math"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

// The kernel's buffers of a connection count as memory of the container, and it would keep
// megabytes for a peer that does not read, or of one that is not read from. It takes twice the
// size that is set for receiving, to have some for its own.
const (
	unsentBytes     = 16 << 10
	fromClientBytes = 8 << 10 // heads, and requests behind the one that is answered
	fromBodyBytes   = 32 << 10
	fromAppBytes    = 16 << 10 // it is near
	roomyAppBytes   = 80 << 10 // the same while memory is free: an answer of 64 KiB comes at once
)

// BoundListener bounds what the kernel keeps of what clients send, for all connections that a
// listener accepts; see net.ListenConfig.
func BoundListener(_, _ string, raw syscall.RawConn) error {
	return set(raw, unix.SOL_SOCKET, unix.SO_RCVBUF, fromClientBytes)
}

// BoundAccepted bounds what the kernel keeps for the client, which no listener hands on. For a Unix
// socket that is all that was sent and not read.
func BoundAccepted(c net.Conn) error {
	raw := socket.RawOf(c)
	if raw == nil {
		return nil
	}
	if _, local := c.(*net.UnixConn); local {
		return set(raw, unix.SOL_SOCKET, unix.SO_SNDBUF, unsentBytes)
	}
	return set(raw, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
}

// widen lets the kernel keep more of what a client sends, for a body. Less again would lose what is on
// its way.
func widen(c net.Conn) error { return boundAccepted(c, fromBodyBytes) }

// WidenAccepted lets the kernel keep WideBytes more of a body than Connection.Widen does, or no more
// again.
func WidenAccepted(c net.Conn, wide bool) error {
	if wide {
		return boundAccepted(c, fromBodyBytes+WideBytes/2)
	}
	return boundAccepted(c, fromBodyBytes)
}

// boundAccepted bounds what the kernel keeps of what a client sends. A window of 64 KiB is the most that
// a listener of BoundListener lets a connection have, and without a word it stays at that of the listener.
func boundAccepted(c net.Conn, bytes int) error {
	raw := socket.RawOf(c)
	if raw == nil {
		return nil
	}
	return errors.Join(
		set(raw, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes),
		set(raw, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, math.MaxUint16))
}

// BoundApp bounds what the kernel keeps of a connection to the app; see net.Dialer.
func BoundApp(_, _ string, raw syscall.RawConn) error { return boundApp(raw, fromAppBytes) }

// BoundRoomyApp is BoundApp for a connection that may hold RoomyBytes more.
func BoundRoomyApp(_, _ string, raw syscall.RawConn) error { return boundApp(raw, roomyAppBytes) }

func boundApp(raw syscall.RawConn, received int) error {
	return errors.Join(
		set(raw, unix.SOL_SOCKET, unix.SO_RCVBUF, received),
		set(raw, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes))
}

func set(raw syscall.RawConn, level, option, value int) (err error) {
	failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) })
	return errors.Join(failed, err)
}

package membudget

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the kernel keeps of a connection counts as memory of the container, and it would keep
// megabytes for a peer that does not read, or of one that is not read from. It takes twice what
// it is told for what is received, to have some for its own.
const (
	unsentBytes     = 16 << 10
	fromClientBytes = 32 << 10
	fromAppBytes    = 16 << 10 // it is near
)

// BoundListener bounds what the kernel keeps of what clients send, for all connections that a
// listener accepts; see net.ListenConfig.
func BoundListener(_, _ string, raw syscall.RawConn) error {
	return set(raw, unix.SOL_SOCKET, unix.SO_RCVBUF, fromClientBytes)
}

// BoundAccepted bounds what the kernel keeps for the client, which no listener hands on.
func BoundAccepted(c net.Conn) error {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	return set(raw, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
}

// BoundApp bounds what the kernel keeps of a connection to the app; see net.Dialer.
func BoundApp(_, _ string, raw syscall.RawConn) error {
	return errors.Join(
		set(raw, unix.SOL_SOCKET, unix.SO_RCVBUF, fromAppBytes),
		set(raw, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes))
}

func set(raw syscall.RawConn, level, option, value int) (err error) {
	failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) })
	return errors.Join(failed, err)
}

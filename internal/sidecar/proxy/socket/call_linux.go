package socket

import (
	"net"
	"syscall"
	"unsafe"
)

// RawOf returns the socket of c, nil where it has none or is closed.
func RawOf(c net.Conn) syscall.RawConn {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// silent is not known of a connection without a socket.
func silent(net.Conn) bool { return true }

// isSilent reports whether nothing can be read, not even the end.
func isSilent(fd uintptr) bool {
	var next [1]byte
	_, none, _ := call(syscall.SYS_RECVFROM, fd, next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return none
}

func call(trap, fd uintptr, p []byte, flags uintptr) (n int, none bool, err error) {
	for {
		done, _, failed := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0) //nolint:gosec // as package syscall does it
		switch failed {
		case 0:
			return int(done), false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, failed
		}
	}
}

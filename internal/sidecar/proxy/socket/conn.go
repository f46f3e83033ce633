package socket

import (
	"net"
	"syscall"
)

// A Conn is a connection that reads and writes as an IO does, for a client that is given
// connections. One goroutine at a time reads from it, and one writes to it.
type Conn struct {
	net.Conn

	io IO
}

// NewConn returns a Conn over c, or c itself where it has no socket.
func NewConn(c net.Conn) net.Conn {
	if RawOf(c) == nil {
		return c
	}
	s := &Conn{Conn: c}
	s.io.Use(c)
	return s
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) { return c.io.Read(p) }

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) { return c.io.Write(p) }

// SyscallConn implements syscall.Conn for clients that look whether an idle connection is silent.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if c.io.raw == nil {
		return nil, net.ErrClosed
	}
	return idle{c.io.raw}, nil
}

// An idle is the socket of a connection from which nobody reads.
type idle struct{ syscall.RawConn }

// Read calls f only where something has come, or the peer is gone: with nothing to read, f would
// find out by an announced call what this one knows.
func (i idle) Read(f func(fd uintptr) (done bool)) error {
	silent := false
	err := i.RawConn.Read(func(fd uintptr) bool {
		if silent = isSilent(fd); silent {
			return true
		}
		return f(fd)
	})
	return err //nolint:wrapcheck // of the connection
}

package http1

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

const (
	headTime = 5 * time.Second  // for the head of a request, and before the first one
	idleTime = 75 * time.Second // between requests
	// parkTime is how long a connection is idle before it is parked. One that has a request each
	// second is never parked: to serve it again costs more than to keep its goroutine.
	parkTime  = time.Second
	parkSlack = 250 * time.Millisecond
)

// A phase is what a connection is at.
type phase = int32

const (
	busy phase = iota
	between
	closed
)

// A conn is a connection of a client. One goroutine at a time uses it, but for the methods of
// membudget.Holder, endIdle and cut.
type conn struct {
	net.Conn
	server *Server
	memory *membudget.Connection
	remote string
	out    outgoing

	phase   atomic.Int32
	http2   atomic.Bool
	pending atomic.Bool              // something of the next request has been read
	present atomic.Pointer[transfer] // the request in flight
	place   atomic.Uint64            // where it is parked; 0: it is not

	io       *socket.IO // through which it is read from and written to; nil while it is parked
	scratch  *scratch   // nil while nothing of a request is there
	in       input
	deadline time.Time // of reads, as far as it is known
	since    time.Time // between requests
	first    bool      // no request has come
	known    bool      // the protocol
	wide     bool      // the kernel may keep membudget.WideBytes more of it
	post     bool      // the last request was one, behind which an empty line may come
}

func newConn(s *Server, socket net.Conn) *conn {
	c := &conn{Conn: socket, server: s, remote: socket.RemoteAddr().String(), first: true}
	c.out.to.Conn = socket
	return c
}

// An outcome is how the wait for a request ends.
type outcome int

const (
	over   outcome = iota // the connection has to be closed
	read                  // there is a head
	passed                // the connection is parked, or another one's
)

// serve serves requests until the connection ends, or is parked.
func (c *conn) serve() {
	for {
		switch c.next() {
		case over:
			c.end()
			return
		case passed:
			return
		case read:
		}
		if !c.transfer() {
			if framing.Unread(c.Conn) {
				c.closeWrite()
				c.linger()
			}
			c.end()
			return
		}
	}
}

// resume serves a connection that was parked.
func (c *conn) resume() {
	if !c.memory.Unpark(membudget.ParkedBytes) {
		c.turnAway(framing.NoMemory)
		c.end()
		return
	}
	c.serve()
}

// end closes the connection for good.
func (c *conn) end() {
	c.release()
	_ = c.Close()
	c.server.leave(c)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.memory.Close()
	return c.Conn.Close() //nolint:wrapcheck // of the connection
}

// rest begins to wait for a request. It returns false where the server waits for no more.
func (c *conn) rest() bool {
	c.since = time.Now()
	c.pending.Store(c.in.some())
	c.memory.Idle(c.since.Sub(process))
	c.phase.Store(between)
	return c.in.some() || !c.server.closing.Load()
}

// begin says that a request has begun to come. It returns false where the connection was closed.
func (c *conn) begin() bool { return c.phase.Load() == busy || c.phase.CompareAndSwap(between, busy) }

// endIdle closes the connection unless a request has begun to come over it.
func (c *conn) endIdle() {
	if c.phase.CompareAndSwap(between, closed) {
		c.drop()
	}
}

// cut closes the connection, whatever it is at.
func (c *conn) cut() {
	if t := c.present.Load(); t != nil {
		t.cancel(aborted)
	}
	c.drop()
}

// drop closes the connection, whose goroutine notices. One that is parked has none.
func (c *conn) drop() {
	if c.server.waiting.remove(c) {
		c.end()
		return
	}
	_ = c.Close()
}

// Pending implements membudget.Holder.
func (c *conn) Pending() bool { return c.pending.Load() || framing.Unread(c.Conn) }

// Yield implements membudget.Holder.
func (c *conn) Yield(head bool) {
	_ = c.SetWriteDeadline(time.Now().Add(framing.YieldTime)) // nothing is being written
	switch {
	case c.http2.Load():
		_, _ = c.Write([]byte(framing.GoneIdle))
	case head:
		_, _ = c.Write([]byte(framing.NoMemory))
	}
	c.drop()
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.io != nil {
		return c.io.Read(p) //nolint:wrapcheck // of the connection
	}
	return c.Conn.Read(p) //nolint:wrapcheck // of the connection
}

// SyscallConn implements syscall.Conn, for the server of HTTP/2; see socket.RawOf.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn() //nolint:wrapcheck // of the connection
	}
	return nil, errors.ErrUnsupported
}

// tryRead reads what has come, and does not wait; see socket.IO.
func (c *conn) tryRead(p []byte) (int, error) { return c.io.TryRead(p) } //nolint:wrapcheck // of the connection

// bound sets the deadline of reads; zero for none.
func (c *conn) bound(t time.Time) error {
	c.deadline = t
	return c.SetReadDeadline(t) //nolint:wrapcheck // of the connection
}

// linger reads for a moment what the client still sends. Closed with something unread the connection
// would be reset, and the end of an answer lost.
func (c *conn) linger() {
	if c.bound(time.Now().Add(lastRead)) != nil {
		return
	}
	for {
		if _, err := c.Read(c.scratch.first[:]); err != nil {
			return
		}
	}
}

// closeWrite ends what is sent to the client.
func (c *conn) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // one that fails is closed anyway
	}
}

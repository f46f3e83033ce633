package framing

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// Listen returns a listener whose connections are checked, and which calls refused for
// each that is malformed. Connections that the port has no memory for are answered and closed.
// HTTP/2 with prior knowledge passes unchecked: its frames have one reading only.
//
// Connections that are idle for a second are taken away from the server, and accepted once more
// when something comes over them.
func Listen(l net.Listener, refused func(), p *membudget.Port) net.Listener {
	return listen(l, refused, p, parkAfter)
}

// A Conn is a connection that is checked as it is read. A Read returns what comes before
// the first line that is malformed, and from then on an *Error.
//
// Where a head is malformed, bytes that no head may have come before the error. The
// parser may be reading ahead, and would take an error for the end of a client that it
// still works for, while it answers these in their turn.
type Conn struct {
	*socket
	park    *park
	idle    idleTime
	skips   bool    // an empty line before the first request
	scanner scanner // of the one goroutine that reads
	out     Writer  // guarded by half.mu
	half    halfClose
	refuse  []byte // what comes before err
	err     error  // of the scanner, for good
}

// A socket is what stays of a connection while it is parked.
type socket struct {
	net.Conn
	memory *membudget.Connection
	http2  atomic.Bool
}

// newSocket returns false where there is no memory.
func newSocket(c net.Conn, p *membudget.Port) (*socket, bool) {
	s := &socket{Conn: c}
	return s, s.enter(p)
}

func newConn(s *socket, p *park) *Conn {
	return &Conn{socket: s, park: p, out: Writer{Conn: s.Conn}, half: halfClose{wake: make(chan struct{}, 1)}}
}

var inNoHead = []byte("\x00\r\n\r\n")

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if c.err != nil {
		return c.end(p)
	}
	n, err := c.readOrPark(p)
	if n == 0 && c.lingers(err) {
		return c.linger(p)
	}
	if n == 0 || c.http2.Load() {
		return n, err
	}
	return c.check(p, n, err)
}

// check returns how much of the n bytes in p, behind which a read ended by err, may be handed on.
func (c *Conn) check(p []byte, n int, err error) (int, error) {
	good, malformed := c.scanner.scan(p[:n])
	if malformed != nil {
		return c.breakOff(p, good, malformed)
	}
	if c.scanner.next == otherProtocol {
		c.http2.Store(true)
	}
	if !c.follow(good) {
		return 0, c.giveUp()
	}
	return good, err
}

// breakOff says that the connection is malformed behind the first good bytes of p.
func (c *Conn) breakOff(p []byte, good int, malformed error) (int, error) {
	c.err = malformed
	c.park.refused()
	if c.scanner.inHead() {
		c.refuse = inNoHead
	}
	if good == 0 {
		return c.end(p)
	}
	return good, nil
}

// end reads what follows the last good line.
func (c *Conn) end(p []byte) (int, error) {
	if len(c.refuse) == 0 {
		return 0, c.err
	}
	n := copy(p, c.refuse)
	c.refuse = c.refuse[n:]
	return n, nil
}

// CloseWrite signals to the peer that nothing more comes, when the connection can.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type contextKey struct{}

// Context returns ctx with the connection, for Admit; see http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

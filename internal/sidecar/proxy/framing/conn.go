package framing

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// silence is how long a client has to end a tunnel that the app has ended.
const silence = 5 * time.Second

// Listen returns a listener whose connections are checked, and which calls refused for
// each that is malformed. Connections that the port has no memory for are answered and closed.
// HTTP/2 with prior knowledge is served by http2, which is given what came behind the preface and
// closes the connection. Where that is nil it passes unchecked: its frames have one reading only.
//
// Connections that are idle for a second are taken away from the server, and accepted once more
// when something comes over them.
func Listen(l net.Listener, refused func(), p *membudget.Port, http2 HTTP2) net.Listener {
	return listen(l, refused, p, parkAfter, http2)
}

// HTTP2 serves a connection to its end.
type HTTP2 func(c net.Conn, m *membudget.Connection, rest []byte)

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
	tunnel  atomic.Bool
	broken  atomic.Bool // malformed
	last    atomic.Bool // no request follows the one that was answered
	began   time.Time
	moved   atomic.Int64 // nanoseconds from began to when the deadline of writes was moved
	half    halfClose
	early   early
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
	c := &Conn{socket: s, park: p, began: time.Now(), half: halfClose{wake: make(chan struct{}, 1)}}
	c.moved.Store(-int64(moving)) // never
	return c
}

var inNoHead = []byte("\x00\r\n\r\n")

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if c.err != nil {
		return c.end(p)
	}
	if c.last.Load() {
		return c.drop(p)
	}
	if c.undecided() {
		if n, err := c.peek(p); n > 0 || !c.lingers(err) {
			return n, err
		}
		return c.linger(p[:min(len(p), 1)])
	}
	if c.scanner.next == opening && c.park.http2 != nil {
		return c.open(p)
	}
	n, err := c.readOrPark(p)
	if c.last.Load() { // since this read began
		if _, malformed := c.scanner.scan(p[:n]); malformed != nil || err != nil {
			return 0, io.EOF
		}
		return c.drop(p)
	}
	if n == 0 && c.lingers(err) {
		return c.linger(p)
	}
	if n == 0 || c.tunnel.Load() || c.http2.Load() {
		return n, err
	}
	return c.check(p, n, err)
}

// check returns how much of the n bytes in p, behind which a read ended by err, may be handed on.
func (c *Conn) check(p []byte, n int, err error) (int, error) {
	if len(c.early.first) > 0 {
		if malformed := c.decline(); malformed != nil {
			return c.breakOff(p, 0, malformed)
		}
	}
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
	c.hold(p[good:n])
	return good, err
}

// breakOff says that the connection is malformed behind the first good bytes of p.
func (c *Conn) breakOff(p []byte, good int, malformed error) (int, error) {
	c.err = malformed
	c.broken.Store(true)
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

// CloseWrite signals to the peer that nothing more comes, when the connection can. A
// reader of a tunnel cannot distinguish a peer that ignores this from one that has more
// to say. So nothing is read that comes later than 5 seconds from then on.
func (c *Conn) CloseWrite() error {
	if c.tunnel.Load() {
		if err := c.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return fmt.Errorf("bound the end of a tunnel: %w", err)
		}
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type contextKey struct{}

// Context returns ctx with the connection, for Tunnel; see http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// IsMalformed reports whether the connection that the request with this context came over
// turned out to be malformed. net/http hides that from handlers, and ends the context.
func IsMalformed(ctx context.Context) bool {
	c, ok := ctx.Value(contextKey{}).(*Conn)
	return ok && c.broken.Load()
}

// CloseWrite ends what is sent to the client of the request with this context.
func CloseWrite(ctx context.Context) {
	if c, ok := ctx.Value(contextKey{}).(*Conn); ok {
		_ = c.CloseWrite() // one that fails is closed anyway
	}
}

// Tunnel ends the checks of the connection that the request with this context came over.
// Call it before the client is notified that the protocol changes.
func Tunnel(ctx context.Context) {
	if c, ok := ctx.Value(contextKey{}).(*Conn); ok {
		c.tunnel.Store(true)
	}
}

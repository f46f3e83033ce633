package framing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// parkAfter is how long a connection is idle before it is parked. One that has a request each
// second is never parked: to serve it again costs as much as to accept it.
const parkAfter = time.Second

// A park keeps the connections of HTTP/1.1 that are idle. net/http keeps two buffers, a parser
// and a large stack for each of its connections. So it is made to believe that the connection
// has ended, and is given it as a new one when something comes over it. Meanwhile a goroutine
// waits that needs next to nothing.
type park struct {
	net.Listener
	refused func()
	port    *membudget.Port
	refuser *Refuser
	after   time.Duration // that a connection is idle

	ready chan accepted // for the server
	done  chan struct{} // closed with the listener

	mu      sync.Mutex
	closed  bool
	sockets map[*socket]struct{} // that are parked
}

// An accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

func listen(l net.Listener, refused func(), port *membudget.Port, after time.Duration) net.Listener {
	p := &park{
		Listener: l, refused: refused, port: port.Of(membudget.ServerBytes), refuser: NewRefuser(), after: after,
		ready: make(chan accepted), done: make(chan struct{}), sockets: map[*socket]struct{}{},
	}
	go p.accept()
	return p
}

// accept has new connections accepted until the listener is closed.
func (p *park) accept() {
	for {
		next := accepted{}
		if next.conn, next.err = p.Listener.Accept(); next.err == nil {
			_ = membudget.BoundAccepted(next.conn) // one that fails is closed by the client
			s, ok := newSocket(next.conn, p.port)
			if !ok {
				p.refuser.Refuse(next.conn)
				continue
			}
			next.conn = newConn(s, p)
		}
		if !p.hand(next) {
			return
		}
	}
}

// hand has Accept return what is next, or closes that with the listener.
func (p *park) hand(next accepted) bool {
	select {
	case p.ready <- next:
		return true
	case <-p.done:
		if next.conn != nil {
			_ = next.conn.Close()
		}
		return false
	}
}

// Accept implements net.Listener.
func (p *park) Accept() (net.Conn, error) {
	select {
	case next := <-p.ready:
		return next.conn, next.err
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It closes the connections that are parked, too.
func (p *park) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return net.ErrClosed
	}
	p.closed = true
	close(p.done)
	for s := range p.sockets {
		_ = s.Close()
	}
	return p.Listener.Close()
}

// keep parks a connection, whose reads end at that instant, unless the listener is closed.
func (p *park) keep(s *socket, until time.Time, afterPost bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || s.SetReadDeadline(until) != nil {
		return false
	}
	p.sockets[s] = struct{}{}
	s.memory.Park(membudget.WaitingBytes)
	go p.wait(s, afterPost)
	return true
}

// wait gives the connection back to the server when something comes over it.
func (p *park) wait(s *socket, afterPost bool) {
	some := await(s.Conn)
	p.mu.Lock()
	delete(p.sockets, s)
	p.mu.Unlock()
	if some {
		some = s.SetReadDeadline(time.Time{}) == nil
	}
	switch {
	case !some:
		_ = s.Close()
	case !s.memory.Unpark(membudget.WaitingBytes):
		TurnAway(s.Conn, NoMemory)
		_ = s.Close()
	default:
		c := newConn(s, p)
		c.scanner.next, c.skips = requestLine, afterPost
		p.hand(accepted{conn: c})
	}
}

// An idleTime is what a connection knows of the time between requests.
type idleTime struct {
	parks  atomic.Bool // when that is long enough
	parked atomic.Bool // for good: another Conn goes on with the socket
	until  time.Time   // when the server gives up
}

// mayPark reports whether the connection, which is idle, can be parked.
func (c *Conn) mayPark() bool {
	return c.awaited() == 0 && c.scanner.atBoundary() && CanWatch(c.Conn)
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	defer c.interrupt()
	if c.idle.parks.Load() && !t.IsZero() { // the server begins to wait for a request
		c.idle.until = t
		if soon := time.Now().Add(c.park.after); soon.Before(t) {
			t = soon
		}
	}
	return c.Conn.SetReadDeadline(t)
}

// readOrPark is Conn.Read, for a connection over which nothing may come for long.
func (c *Conn) readOrPark(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.skips {
		n, err = c.skip(p, n)
	}
	if !c.idle.parks.Load() {
		return n, err
	}
	c.idle.parks.Store(false)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(c.idle.until) {
		return n, err
	}
	if c.park.keep(c.socket, c.idle.until, c.scanner.head.Post) {
		c.idle.parked.Store(true)
		return 0, io.EOF
	}
	if err := c.Conn.SetReadDeadline(c.idle.until); err != nil {
		return 0, fmt.Errorf("wait for a request: %w", err)
	}
	return c.Conn.Read(p)
}

// skip takes an empty line from the first n bytes of p. Old clients send one behind a POST,
// and net/http, for which this is another connection, does not forgive it.
func (c *Conn) skip(p []byte, n int) (int, error) {
	c.skips = false
	if n == 1 && p[0] == '\r' && len(p) > 1 {
		more, err := c.Conn.Read(p[1:])
		if err != nil {
			return n, err
		}
		n += more
	}
	if bytes.HasPrefix(p[:n], []byte("\r\n")) {
		n = copy(p, p[2:n])
	}
	return n, nil
}

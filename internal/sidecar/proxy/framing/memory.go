package framing

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// process is about when the process began: phases of connections are measured from there.
var process = time.Now()

// NoMemory is the answer where there is no memory for a request.
const NoMemory = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 46\r\n\r\nthe sidecar has no memory left for the request"

// GoAway says over HTTP/2 that no stream was or will be processed beyond one that has not been
// opened: an empty SETTINGS, with which a server begins, and GOAWAY with the code NO_ERROR. A
// client may send its requests over another connection (RFC 9113, section 6.8).
const GoAway = "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + lastStream + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// GoneIdle is the GOAWAY of a connection without streams that was in use.
const GoneIdle = lastStream + "\x7f\xff\xff\xff" + "\x00\x00\x00\x00"

const lastStream = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" // the header of a GOAWAY

// errNoMemory ends a connection. net/http takes it for a time-out, and answers nothing itself.
var errNoMemory net.Error = endError("there is no memory for the request")

type endError string

func (e endError) Error() string { return string(e) }
func (endError) Timeout() bool   { return true }
func (endError) Temporary() bool { return false }

// Admit takes what the request needs; see membudget.Connection.
func Admit(r *http.Request) (membudget.Request, bool) {
	c, ok := r.Context().Value(contextKey{}).(*Conn)
	if !ok {
		return membudget.Request{}, true
	}
	return c.memory.Admit(r)
}

// enter takes what the connection needs, and reports whether there is memory for it.
func (s *socket) enter(p *membudget.Port) (ok bool) {
	s.memory, ok = p.Connect(AddressOf(s.Conn), time.Since(process), s)
	return ok
}

// AddressOf returns the address of the peer; all that have none are one.
func AddressOf(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}

// follow says what the n bytes that were read last are part of. It returns false where there is
// no memory for them.
func (c *Conn) follow(n int) bool {
	switch {
	case c.http2.Load(): // since these bytes
		return c.memory.Grow()
	case c.awaited() > 0:
		return c.memory.Active()
	case c.scanner.inHead() && !c.scanner.atBoundary(), c.scanner.next == opening:
		return c.memory.Head(time.Since(process), n)
	}
	return true
}

// rest says what the connection is at behind an answer.
func (c *Conn) rest() {
	if c.http2.Load() || c.awaited() == 0 {
		c.memory.Idle(time.Since(process))
	}
}

// giveUp answers what there is no memory for. The client is given a moment to read that.
func (c *Conn) giveUp() error {
	answer := NoMemory
	if c.http2.Load() {
		answer = GoAway
	}
	TurnAway(c.Conn, answer)
	return errNoMemory
}

// Pending implements membudget.Holder.
func (s *socket) Pending() bool { return Unread(s.Conn) }

// Yield implements membudget.Holder.
func (s *socket) Yield(head bool) {
	_ = s.Conn.SetWriteDeadline(time.Now().Add(YieldTime)) // nothing is being written
	switch {
	case s.http2.Load():
		_, _ = s.Conn.Write([]byte(GoneIdle))
	case head:
		_, _ = s.Conn.Write([]byte(NoMemory))
	}
	_ = s.Close()
}

// Close implements net.Conn.
func (s *socket) Close() error {
	defer s.memory.Close()
	return s.Conn.Close()
}

package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// A dial opens a connection.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

var toApp = net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second, Control: membudget.BoundApp}

// checked returns a dial whose connections are looked at before they are used again.
func checked(open dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := open(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &connection{Conn: c}, nil
	}
}

// A connection to the app begins a request only while the app has not closed it. An app
// closes connections that were idle for longer than it likes, and a request sent to it then
// is lost. Its sender cannot distinguish that from a request that the app began and did not
// end, so it may not be sent again. If nothing of a request was written, net/http knows
// that the app never saw it, and sends it over another connection. A request that was begun
// goes on: an app that has answered already may have closed its side.
type connection struct {
	net.Conn
	begins atomic.Bool          // the next write begins a request
	wrote  atomic.Bool          // some of the request that began last
	spoke  atomic.Bool          // the app, since that began
	closed atomic.Bool          // by this side
	sends  atomic.Pointer[body] // what ends with the connection; nil for nothing
	answer answerHead           // while sends is set, of the goroutine that reads
}

var errClosedByApp = errors.New("the app has closed the connection")

// A sending is one request on its way over a connection.
type sending struct {
	body  *body                      // of it
	again bool                       // it does no harm twice
	over  atomic.Pointer[connection] // if that served others before
	by    atomic.Pointer[connection]
}

// of returns r so that the connection that it goes over is notified when it begins, and so that
// net/http does not send it again itself: it would as often as there are connections.
func (s *sending) of(r *http.Request) *http.Request {
	trace := httptrace.ClientTrace{GotConn: s.begin} // of this request alone: WithClientTrace writes to it
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &trace))
	r.GetBody = nil
	return r
}

func (s *sending) begin(got httptrace.GotConnInfo) {
	c, ok := got.Conn.(*connection)
	if !ok {
		return
	}
	c.begins.Store(true)
	c.wrote.Store(false)
	c.spoke.Store(false)
	s.by.Store(c)
	if s.body != nil {
		s.body.again.Store(got.Reused && s.again)
	}
	c.answer = answerHead{}
	c.sends.Store(s.body)
	if got.Reused {
		s.over.Store(c)
	} else {
		s.over.Store(nil)
	}
}

// ended says that no caller waits for an answer any more.
func (s *sending) ended() {
	if c := s.by.Load(); c != nil && s.body != nil {
		c.sends.CompareAndSwap(s.body, nil)
		s.body.stay()
	}
}

// lost reports whether a connection that served others before failed, and the request may go
// over another one: nothing of it was written, or it does no harm twice and the app has said
// nothing.
func (s *sending) lost() bool {
	c := s.over.Load()
	return c != nil && (!c.wrote.Load() || s.again && !c.spoke.Load())
}

// begun reports whether something of the request was written.
func (s *sending) begun() bool { return s.by.Load().wrote.Load() }

// Write implements net.Conn.
func (c *connection) Write(p []byte) (int, error) {
	if c.begins.CompareAndSwap(true, false) && ended(c.Conn) {
		c.sends.Store(nil) // it goes over another one
		return 0, errClosedByApp
	}
	n, err := c.Conn.Write(p)
	if n > 0 && c.wrote.CompareAndSwap(false, true) && c.closed.Load() {
		c.abandon()
	}
	return n, err //nolint:wrapcheck // of the connection
}

// Read implements net.Conn. When the head of the final answer has come, the app need not have
// more of the body: it may close the connection, and the answer is good.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.spoke.Store(true)
		if c.sends.Load() != nil && c.answer.ends(p[:n]) {
			c.sends.Store(nil)
		}
	}
	return n, err //nolint:wrapcheck // of the connection
}

// Close implements net.Conn. The rest of a body that is being sent is of no use then. An
// http.Transport waits for the next part of it, which may not come before the client has an
// answer. A request that was not written at all goes over another connection, with its body.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.closed.Store(true)
	if c.wrote.Load() {
		c.abandon()
	}
	return err //nolint:wrapcheck // of the connection
}

// abandon ends the read of the body that is being sent.
func (c *connection) abandon() {
	if b := c.sends.Swap(nil); b != nil {
		b.abandon()
	}
}

// CloseWrite ends what the client of a tunnel sends to the app. Without it net/http
// ends the tunnel, and what the app still has to say is lost.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // of the connection
	}
	return errors.ErrUnsupported
}

// An answerHead follows the answers to one request up to the end of the final one's head
// (RFC 9112, section 2.1). It is as lenient with line ends as net/http, which reads them.
type answerHead struct {
	line   [len("HTTP/1.1 100")]byte // the status line, as far as it matters
	length int                       // of the present line
	begun  bool                      // the status line has come
}

// ends reports whether the final head ends in p.
func (h *answerHead) ends(p []byte) bool {
	for _, c := range p {
		switch {
		case c == '\r':
		case c != '\n':
			if !h.begun && h.length < len(h.line) {
				h.line[h.length] = c
			}
			h.length++
		case h.length > 0:
			h.begun, h.length = true, 0
		case h.begun && !h.interim():
			return true
		default:
			h.begun = false
		}
	}
	return false
}

// interim reports whether another answer follows: any 1xx but that which opens a tunnel.
func (h *answerHead) interim() bool {
	code := h.line[len("HTTP/1.1 "):]
	return code[0] == '1' && string(code) != "101"
}

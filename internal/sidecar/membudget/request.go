package membudget

import (
	"net/http"
	"strings"
)

// A Request is what a request has taken, from its beginning to its end.
type Request struct {
	connection          *Connection
	request, head, body int64
	window              bool // its body comes over HTTP/2
}

// Admit takes what the request needs, or returns false where too little is left. Give it back by
// Done. A nil connection admits all.
func (c *Connection) Admit(r *http.Request) (Request, bool) {
	if c == nil {
		return Request{}, true
	}
	q := needOf(r, c.wide)
	q.connection = c
	if !c.claim(Requests, q.request) {
		return Request{}, false
	}
	if q.head > 0 && !c.claim(Heads, q.head) {
		c.budget.put(Requests, q.request, c.peer)
		return Request{}, false
	}
	if !q.takeBody() {
		c.budget.put(Requests, q.request, c.peer)
		c.budget.put(Heads, q.head, c.peer)
		return Request{}, false
	}
	return q, true
}

// AdmitCall is Admit for a call of gRPC that the sidecar answers itself.
func (c *Connection) AdmitCall() (Request, bool) {
	if c == nil {
		return Request{}, true
	}
	if !c.claim(Requests, CallBytes) {
		return Request{}, false
	}
	return Request{connection: c, request: CallBytes}, true
}

// TakeMessage takes n bytes for the message of a call, once, or returns false where too little is
// left.
func (q *Request) TakeMessage(n int64) bool {
	if q.connection == nil {
		return true
	}
	if !q.connection.claim(Bodies, n) {
		return false
	}
	q.body = n
	return true
}

// Done gives back what the request has taken.
func (q *Request) Done() {
	c := q.connection
	if c == nil {
		return
	}
	c.budget.put(Requests, q.request, c.peer)
	if q.head > 0 {
		c.budget.put(Heads, q.head, c.peer)
	}
	q.giveBody()
}

// needOf returns what a request needs over a connection that may be wide. Over HTTP/1.1 its head was
// taken as it came.
func needOf(r *http.Request, wide bool) Request {
	body := r.Body != nil && r.Body != http.NoBody
	if r.ProtoMajor == 2 {
		return Request{request: StreamBytes, head: longHead(lengthOf(r)), window: body}
	}
	q := Request{request: RequestBytes}
	if body || wide {
		q.body = UploadBytes
	}
	if upgrade := r.Header["Upgrade"]; len(upgrade) > 0 && strings.EqualFold(upgrade[0], "websocket") {
		q.body = TunnelBytes
	}
	return q
}

// longHead returns what a head of n bytes takes beyond the first of them.
func longHead(n int64) int64 { return headFactor * max(0, n-headFree) }

// lengthOf returns how long the head of a request is.
func lengthOf(r *http.Request) int64 {
	n := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value)
		}
	}
	return int64(n)
}

func (q *Request) takeBody() bool {
	c := q.connection
	n := q.body
	if q.window {
		open := c.bodies.Add(1)
		n = windows(open) - windows(open-1)
	}
	if n == 0 || c.claim(Bodies, n) {
		return true
	}
	if q.window { // others may have come and gone since it was counted
		c.budget.put(Bodies, -n, c.peer)
		q.giveBody()
	}
	return false
}

func (q *Request) giveBody() {
	c := q.connection
	n := q.body
	if q.window {
		open := c.bodies.Add(-1)
		n = windows(open+1) - windows(open)
	}
	if n > 0 {
		c.budget.put(Bodies, n, c.peer)
	}
}

// windows returns what a connection of HTTP/2 may hold of the bodies of that many requests.
func windows(bodies int64) int64 { return min(bodies*WindowBytes, WindowsBytes) }

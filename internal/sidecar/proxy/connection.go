package proxy

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// A dial opens a connection.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

var toApp = net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}

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

// A connection to the app begins a request only as long as the app has not closed it. An
// app closes what was idle for longer than it likes, and what is sent to it then is lost:
// who sent it cannot tell that from a request that the app began and did not end, so
// nobody may send it again. Of a request of which nothing was written net/http knows that
// the app never saw it, and sends it over another connection. A request that was begun goes
// on: an app that has answered already may have closed its side.
type connection struct {
	net.Conn
	begins atomic.Bool // the next write begins a request
}

var errClosedByApp = errors.New("the app has closed the connection")

// begin says that a request is about to be sent over the connection.
func begin(got httptrace.GotConnInfo) {
	if c, ok := got.Conn.(*connection); ok {
		c.begins.Store(true)
	}
}

// beginning is told which connection a request goes over.
var beginning = &httptrace.ClientTrace{GotConn: begin}

// Write implements net.Conn.
func (c *connection) Write(p []byte) (int, error) {
	if c.begins.CompareAndSwap(true, false) && ended(c.Conn) {
		return 0, errClosedByApp
	}
	return c.Conn.Write(p)
}

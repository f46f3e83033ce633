package proxy

import (
	"context"
	"errors"
	"net"
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

// A connection to the app is written to only as long as the app has not closed it. An app
// closes what was idle for longer than it likes, and what is sent to it then is lost: who
// sent it cannot tell that from a request that the app began and did not end, so
// nobody may send it again. Of a request of which nothing was written net/http knows that
// the app never saw it, and sends it over another connection.
type connection struct {
	net.Conn
	heard atomic.Bool // something came since the last write
}

var errClosedByApp = errors.New("the app has closed the connection")

// Read implements net.Conn.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

// Write implements net.Conn. It looks after the connection where a request may begin:
// behind an answer.
func (c *connection) Write(p []byte) (int, error) {
	if c.heard.CompareAndSwap(true, false) && ended(c.Conn) {
		return 0, errClosedByApp
	}
	return c.Conn.Write(p)
}

package connlimit

import (
	"net"
	"os"
	"time"

	"google.golang.org/grpc/credentials"
)

// Credentials returns those of a server that serves what comes through the listener. Handshakes
// compute on half of the processors at once. So those of a fleet that comes back together take
// nothing from the streams that are up, which would be lost too if they were not read in time.
// A handshake whose turn comes later than within is not computed: its peer has given up.
func (d *Listener) Credentials(by credentials.TransportCredentials, within time.Duration) credentials.TransportCredentials {
	return transport{TransportCredentials: by, listener: d, within: within}
}

// transport lets streams find their connection.
type transport struct {
	credentials.TransportCredentials
	listener *Listener
	within   time.Duration
}

// ServerHandshake implements [credentials.TransportCredentials].
func (h transport) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	h.listener.mu.Lock()
	v := h.listener.arrived[raw]
	delete(h.listener.arrived, raw)
	h.listener.mu.Unlock()
	turn := &turnConn{Conn: raw, turns: h.listener.turns, until: time.Now().Add(h.within)}
	conn, info, err := h.TransportCredentials.ServerHandshake(turn)
	turn.end()
	if v == nil {
		return conn, info, err // the listener has ended it meanwhile
	}
	if err != nil {
		v.leave()
		return nil, nil, err
	}
	return serverConn{Conn: conn, conn: v}, authInfo{AuthInfo: info, conn: v}, nil
}

// Clone implements [credentials.TransportCredentials].
func (h transport) Clone() credentials.TransportCredentials {
	h.TransportCredentials = h.TransportCredentials.Clone()
	return h
}

// A turnConn is a connection whose handshake waits for its turn when it has read something. It gives
// the turn back where it waits for the peer, so one that is silent or slow keeps no other waiting.
type turnConn struct {
	net.Conn
	turns chan struct{}
	until time.Time
	has   bool // the turn
	over  bool // the handshake
}

// Read implements [net.Conn].
func (c *turnConn) Read(p []byte) (int, error) {
	if c.over {
		return c.Conn.Read(p)
	}
	c.giveBack()
	n, err := c.Conn.Read(p)
	if err != nil {
		return n, err
	}
	c.turns <- struct{}{}
	c.has = true
	if !time.Now().Before(c.until) {
		return 0, os.ErrDeadlineExceeded
	}
	return n, nil
}

func (c *turnConn) giveBack() {
	if c.has {
		c.has = false
		<-c.turns
	}
}

// end has the connection wait for no turn any more.
func (c *turnConn) end() {
	c.giveBack()
	c.over = true
}

package connlimit

import (
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// Credentials returns those of a server that serves what comes through the listener. Handshakes
// compute on half of the processors at once. So those of a fleet that comes back together take
// nothing from the streams that are up, which would be lost too if they were not read in time.
// A handshake whose turn comes later than within is not computed: its peer has given up. One that the listener
// has ended meanwhile waits no longer.
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
	if v != nil {
		turn.ended = v.ended
	}
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

// maxPreferred is how many turns of a handshake that was computed before go before those of others. It needs one.
const maxPreferred = 3

// A turnConn is a connection whose handshake waits for its turn when it has read something. It gives
// the turn back where it waits for the peer, so one that is silent or slow keeps no other waiting.
type turnConn struct {
	net.Conn
	turns     *turns
	until     time.Time
	ended     <-chan struct{} // closed when the listener has ended the connection; nil: never
	answered  bool            // the peer was sent something
	preferred int             // turns that go before those of others
	has       bool            // the turn
	over      bool            // the handshake
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
	c.has = c.turns.take(c.preferred > 0, c.until, c.ended)
	c.preferred = max(0, c.preferred-1)
	if !c.has || !time.Now().Before(c.until) {
		return 0, os.ErrDeadlineExceeded
	}
	return n, nil
}

// Write implements [net.Conn]. The answer is what costs most: a peer that has it is not to wait behind
// those that have none. Bytes that a peer sends prove nothing.
func (c *turnConn) Write(p []byte) (int, error) {
	if !c.answered {
		c.answered, c.preferred = true, maxPreferred
	}
	return c.Conn.Write(p)
}

func (c *turnConn) giveBack() {
	if c.has {
		c.has = false
		c.turns.giveBack()
	}
}

// end has the connection wait for no turn any more.
func (c *turnConn) end() {
	c.giveBack()
	c.over = true
}

// turns limits how many handshakes compute at once. While more wait, the latest goes first: its peer is the
// one that waits for longest from then on. Were it the one that has waited longest, each would be computed just
// before its peer gives up, and none would end well. Those that were answered go before those that were not.
type turns struct {
	mu       sync.Mutex
	free     int             // 0 while some wait
	waiting  []chan struct{} // without an answer yet, the latest last; closed when it is their turn
	answered []chan struct{} // the same with one
}

// take waits for a turn, and reports false when none comes until then, or before ended is closed.
func (t *turns) take(answered bool, until time.Time, ended <-chan struct{}) bool {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	among, mine := &t.waiting, make(chan struct{})
	if answered {
		among = &t.answered
	}
	*among = append(*among, mine)
	t.mu.Unlock()
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	select {
	case <-mine:
		return true
	case <-late.C:
	case <-ended:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(*among, mine)
	if i < 0 { // it came just now
		return true
	}
	*among = slices.Delete(*among, i, i+1)
	return false
}

// giveBack has the next one go on.
func (t *turns) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, among := range []*[]chan struct{}{&t.answered, &t.waiting} {
		if last := len(*among) - 1; last >= 0 {
			close((*among)[last])
			*among = slices.Delete(*among, last, last+1)
			return
		}
	}
	t.free++
}

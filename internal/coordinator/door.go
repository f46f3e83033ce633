package coordinator

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// strangerTimeout is how long a connection may be open until a stream of it is authenticated,
// and after its last stream ended, which a slow sidecar is to read. One whose token waits for
// its turn to be reviewed is not ended by it: a pod has one such turn, which ends by
// authenticateTimeout. Sidecars open a connection for each stream.
const strangerTimeout = 10 * time.Second

// A connState is the state of a connection.
type connState int

const (
	unauthenticated connState = iota // no stream of it is authenticated
	inReview                         // the token of a stream waits for its review, or is reviewed
	authenticated                    // a stream of it is
	connStates
)

// String returns the value of the label.
func (s connState) String() string {
	return [connStates]string{"unauthenticated", "in review", "authenticated"}[s]
}

// A door is the listener of the fleet's port. It bounds the connections without a stream that
// is authenticated, in number and in time: each takes memory and proves nothing. An address
// has at most half of the places, since it may stand for all pods of a node: that is more
// than the 256 that a node runs.
type door struct {
	net.Listener
	turned *turned

	mu        sync.Mutex
	strangers *places[netip.Addr, *visitor]
	leaving   *list.List            // of visitors whose last stream ended, the oldest first; as many at most
	arrived   map[net.Conn]*visitor // that did not begin to shake hands yet
}

// newDoor returns a door with places for as many connections at once.
func newDoor(listener net.Listener, most int, t *turned) *door {
	oldest := (*list.List).Front // had the most time
	return &door{
		Listener: listener, turned: t,
		strangers: newPlaces[netip.Addr, *visitor](most, max(1, most/2), oldest),
		leaving:   list.New(),
		arrived:   map[net.Conn]*visitor{},
	}
}

// Accept implements [net.Listener]. Connections beyond the bounds are closed at once, which
// costs no handshake.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if d.admit(conn) {
			return conn, nil
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // the kernel keeps nothing of it either
		}
		_ = conn.Close()
	}
}

// admit reports whether there is room for the connection, if need be after it ended another.
func (d *door) admit(conn net.Conn) bool {
	from := addressOf(conn)
	v := &visitor{door: d, conn: conn, from: from}
	d.mu.Lock()
	got, givenUp := d.strangers.take(from, v)
	full := d.strangers.of(from) >= d.strangers.each
	if got != nil {
		v.place = got
		v.timeout = time.AfterFunc(strangerTimeout, func() { v.dismiss(boundTime) })
		d.arrived[conn] = v
		d.turned.metrics.connections.WithLabelValues(v.state.String()).Inc()
	}
	d.mu.Unlock()
	switch {
	case got == nil && full:
		d.turned.away(boundAddress, "address", from)
	case got == nil:
		d.turned.away(boundConnections, "address", from)
	case givenUp != nil:
		givenUp.member.dismiss(boundConnections)
	}
	return got != nil
}

// addressOf returns the address of the peer; all that have none are one.
func addressOf(conn net.Conn) netip.Addr {
	at, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	return at.Addr()
}

// A visitor is a connection that was let in. The methods that note what its streams do may be
// called of nil, for a stream that did not come through a door.
type visitor struct {
	door *door
	conn net.Conn
	from netip.Addr

	// door.mu guards the rest.
	state   connState
	streams [connStates]int              // that are under way, by the state that they give it
	place   *place[netip.Addr, *visitor] // until the first token is reviewed or accepted
	leaving *list.Element                // nil unless its last stream ended
	timeout *time.Timer
	gone    bool
}

// dismiss ends a connection without an authenticated stream, for a bound.
func (v *visitor) dismiss(by portBound) {
	v.door.mu.Lock()
	over, said := !v.gone && v.state == unauthenticated, v.leaving != nil
	v.door.mu.Unlock()
	if !over {
		return
	}
	if !said { // nothing was turned away otherwise
		v.door.turned.away(by, "address", v.from)
	}
	v.end()
}

func (v *visitor) end() {
	v.leave()
	_ = v.conn.Close()
}

// leave notes that the connection is closed.
func (v *visitor) leave() {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	delete(v.door.arrived, v.conn)
	if v.gone {
		return
	}
	v.gone = true
	v.release()
	v.door.turned.metrics.connections.WithLabelValues(v.state.String()).Dec()
}

// release gives back what a connection without an authenticated stream has. The lock is held.
func (v *visitor) release() {
	v.timeout.Stop()
	v.door.strangers.free(v.place)
	if v.leaving != nil {
		v.door.leaving.Remove(v.leaving)
		v.leaving = nil
	}
}

// keep has the connection be in the state until done is called.
func (v *visitor) keep(state connState) (done func()) {
	if v == nil {
		return func() {}
	}
	v.count(state, 1)
	return func() { v.count(state, -1) }
}

// count notes that a stream begins or ends that gives the connection the state.
func (v *visitor) count(state connState, n int) {
	if over := v.move(state, n); over != nil {
		over.end()
	}
}

// move does so. It returns a connection that has to end, because more are leaving than there
// are places for strangers.
func (v *visitor) move(state connState, n int) (over *visitor) {
	d := v.door
	d.mu.Lock()
	defer d.mu.Unlock()
	v.streams[state] += n
	next := unauthenticated
	switch {
	case v.gone:
		return nil
	case v.streams[authenticated] > 0:
		next = authenticated
	case v.streams[inReview] > 0:
		next = inReview
	}
	if next == v.state {
		return nil
	}
	v.release()
	d.turned.metrics.connections.WithLabelValues(v.state.String()).Dec()
	d.turned.metrics.connections.WithLabelValues(next.String()).Inc()
	v.state = next
	if next != unauthenticated {
		return nil
	}
	v.leaving = d.leaving.PushBack(v)
	v.timeout.Reset(strangerTimeout)
	if d.leaving.Len() > d.strangers.most {
		over, _ = d.leaving.Front().Value.(*visitor)
	}
	return over
}

// handshakes returns the credentials of a server that serves what comes through the door.
func (d *door) handshakes(by credentials.TransportCredentials) credentials.TransportCredentials {
	return handshakes{TransportCredentials: by, door: d}
}

// handshakes let streams find the visitor of their connection.
type handshakes struct {
	credentials.TransportCredentials
	door *door
}

// ServerHandshake implements [credentials.TransportCredentials].
func (h handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	h.door.mu.Lock()
	v := h.door.arrived[raw]
	delete(h.door.arrived, raw)
	h.door.mu.Unlock()
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if v == nil {
		return conn, info, err // the door has ended it meanwhile
	}
	if err != nil {
		v.leave()
		return nil, nil, err
	}
	return visited{Conn: conn, visitor: v}, arrival{AuthInfo: info, visitor: v}, nil
}

// Clone implements [credentials.TransportCredentials].
func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{TransportCredentials: h.TransportCredentials.Clone(), door: h.door}
}

// visited is a connection after its handshake.
type visited struct {
	net.Conn
	visitor *visitor
}

// Close implements [net.Conn].
func (c visited) Close() error {
	c.visitor.leave()
	return c.Conn.Close()
}

// arrival is what streams know of their connection.
type arrival struct {
	credentials.AuthInfo
	visitor *visitor
}

// visitorOf returns the connection of a stream's context; nil for one that came through no door.
func visitorOf(ctx context.Context) *visitor {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.AuthInfo.(arrival); ok {
			return a.visitor
		}
	}
	return nil
}

package connlimit

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Timeout is how long a connection may be open until a stream of it is authenticated,
// and after its last stream ended, which a slow sidecar is to read. One whose token waits for
// its turn to be reviewed is not ended by it: a pod has one such turn, which ends in time.
// Sidecars open a connection for each stream.
const Timeout = 20 * time.Second

// A State is the state of a connection.
type State int

// The states of a connection, in the order in which it may have them.
const (
	Unauthenticated State = iota // no stream of it is authenticated
	InReview                     // the token of a stream waits for its review, or is reviewed
	Authenticated                // a stream of it is
	states
)

// String returns the value of the label.
func (s State) String() string {
	return [states]string{"unauthenticated", "in review", "authenticated"}[s]
}

// A Listener is the listener of the fleet's port. It bounds the connections without a stream that
// is authenticated, in number and in time: each takes memory and proves nothing. An address
// has at most half of the places, since it may stand for all pods of a node: that is more
// than the 256 that a node runs.
type Listener struct {
	net.Listener
	refusals    *Refusals
	connections *prometheus.GaugeVec // that are open, by state

	mu      sync.Mutex
	pending *Places[netip.Addr, *Conn]
	leaving *list.List         // of connections whose last stream ended, the oldest first; as many at most
	arrived map[net.Conn]*Conn // that did not begin to shake hands yet

	turns *turns // of handshakes
}

// NewListener returns a listener with places for most connections without an authenticated
// stream at once. It counts open connections by their state.
func NewListener(listener net.Listener, most int, refusals *Refusals, connections *prometheus.GaugeVec) *Listener {
	oldest := (*list.List).Front // had the most time
	return &Listener{
		Listener: listener, refusals: refusals, connections: connections,
		pending: NewPlaces[netip.Addr, *Conn](most, max(1, most/2), oldest),
		leaving: list.New(),
		arrived: map[net.Conn]*Conn{},
		turns:   &turns{free: (runtime.GOMAXPROCS(0) + 1) / 2},
	}
}

// Accept implements [net.Listener]. Connections beyond the bounds are closed at once, which
// costs no handshake.
func (d *Listener) Accept() (net.Conn, error) {
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
func (d *Listener) admit(conn net.Conn) bool {
	from := addressOf(conn)
	v := &Conn{listener: d, conn: conn, from: from, ended: make(chan struct{})}
	d.mu.Lock()
	got, givenUp := d.pending.Take(from, v, 1)
	full := d.pending.Of(from) >= d.pending.each
	if got != nil {
		v.place = got
		v.timeout = time.AfterFunc(Timeout, func() { v.dismiss(BoundTime) })
		d.arrived[conn] = v
		d.connections.WithLabelValues(v.state.String()).Inc()
	}
	d.mu.Unlock()
	switch {
	case got == nil && full:
		d.refusals.Count(BoundAddress, "address", from)
	case got == nil:
		d.refusals.Count(BoundConnections, "address", from)
	}
	for _, other := range givenUp {
		other.Member.dismiss(BoundConnections)
	}
	return got != nil
}

// addressOf returns the address of the peer; all that have none are one.
func addressOf(conn net.Conn) netip.Addr {
	at, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	return at.Addr()
}

// A Conn is a connection that was let in. Keep may be called on nil, for a stream that did
// not come through a Listener.
type Conn struct {
	listener *Listener
	conn     net.Conn
	from     netip.Addr
	ended    chan struct{} // closed when the connection is not served any more

	// listener.mu guards the rest.
	state   State
	streams [states]int               // that are under way, by the state that they give it
	place   *Place[netip.Addr, *Conn] // until the first token is reviewed or accepted
	leaving *list.Element             // nil unless its last stream ended
	timeout *time.Timer
	gone    bool
}

// dismiss ends a connection without an authenticated stream, for a bound.
func (v *Conn) dismiss(by Bound) {
	v.listener.mu.Lock()
	over, said := !v.gone && v.state == Unauthenticated, v.leaving != nil
	v.listener.mu.Unlock()
	if !over {
		return
	}
	if !said { // nothing was turned away otherwise
		v.listener.refusals.Count(by, "address", v.from)
	}
	v.end()
}

func (v *Conn) end() {
	v.leave()
	_ = v.conn.Close()
}

// leave notes that the connection is closed.
func (v *Conn) leave() {
	v.listener.mu.Lock()
	defer v.listener.mu.Unlock()
	delete(v.listener.arrived, v.conn)
	if v.gone {
		return
	}
	v.gone = true
	close(v.ended)
	v.release()
	v.listener.connections.WithLabelValues(v.state.String()).Dec()
}

// release gives back what a connection without an authenticated stream has. The lock is held.
func (v *Conn) release() {
	v.timeout.Stop()
	v.listener.pending.Free(v.place)
	if v.leaving != nil {
		v.listener.leaving.Remove(v.leaving)
		v.leaving = nil
	}
}

// Keep has the connection be in the state until done is called.
func (v *Conn) Keep(state State) (done func()) {
	if v == nil {
		return func() {}
	}
	v.count(state, 1)
	return func() { v.count(state, -1) }
}

// count notes that a stream begins or ends that gives the connection the state.
func (v *Conn) count(state State, n int) {
	if over := v.move(state, n); over != nil {
		over.end()
	}
}

// move does so. It returns a connection that has to end, because more are leaving than there
// are places for those without an authenticated stream.
func (v *Conn) move(state State, n int) (over *Conn) {
	d := v.listener
	d.mu.Lock()
	defer d.mu.Unlock()
	v.streams[state] += n
	next := Unauthenticated
	switch {
	case v.gone:
		return nil
	case v.streams[Authenticated] > 0:
		next = Authenticated
	case v.streams[InReview] > 0:
		next = InReview
	}
	if next == v.state {
		return nil
	}
	v.release()
	d.connections.WithLabelValues(v.state.String()).Dec()
	d.connections.WithLabelValues(next.String()).Inc()
	v.state = next
	if next != Unauthenticated {
		return nil
	}
	v.leaving = d.leaving.PushBack(v)
	v.timeout.Reset(Timeout)
	if d.leaving.Len() > d.pending.Most {
		over, _ = d.leaving.Front().Value.(*Conn)
	}
	return over
}

// serverConn is a connection after its handshake.
type serverConn struct {
	net.Conn
	conn *Conn
}

// Close implements [net.Conn].
func (c serverConn) Close() error {
	c.conn.leave()
	return c.Conn.Close()
}

// authInfo is what streams know of their connection.
type authInfo struct {
	credentials.AuthInfo
	conn *Conn
}

// FromContext returns the connection of a stream's context; nil for one that came through no
// Listener.
func FromContext(ctx context.Context) *Conn {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.AuthInfo.(authInfo); ok {
			return a.conn
		}
	}
	return nil
}

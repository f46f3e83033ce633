package hub

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"k8s.io/utils/clock"
)

var errTooOften = errors.New("the member connects too often")

// throttledCredentials let in members that have a certificate of the authority, each member only so often.
type throttledCredentials struct {
	credentials.TransportCredentials
	metrics *metrics
	limit   *handshakeLimit
}

// ServerHandshake implements [credentials.TransportCredentials].
func (d *throttledCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := d.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		d.metrics.handshakes.WithLabelValues("refused").Inc()
		return nil, nil, err
	}
	if !d.limit.allows(certificateOf(info).Subject.CommonName) {
		d.metrics.handshakes.WithLabelValues("too often").Inc()
		return nil, nil, errors.Join(errTooOften, conn.Close())
	}
	d.metrics.handshakes.WithLabelValues("accepted").Inc()
	return conn, info, nil
}

// ClientHandshake implements [credentials.TransportCredentials].
func (*throttledCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a server's")
}

// Clone implements [credentials.TransportCredentials].
func (d *throttledCredentials) Clone() credentials.TransportCredentials {
	return &throttledCredentials{TransportCredentials: d.TransportCredentials.Clone(), metrics: d.metrics, limit: d.limit}
}

// A member connects again when its Secret changes and when the leader does. A few of its
// replicas may do so one after another.
const (
	handshakeSpan = 10 * time.Second
	maxHandshakes = 30 // handshakes of one member in a span
)

// A handshakeLimit counts handshakes of each member. It is safe for concurrent use.
type handshakeLimit struct {
	clock clock.PassiveClock

	mu    sync.Mutex // guards all below
	began time.Time
	count map[string]int // by member, since began
}

func newHandshakeLimit(c clock.PassiveClock) *handshakeLimit { return &handshakeLimit{clock: c} }

// allows reports whether the member may shake hands once more.
func (p *handshakeLimit) allows(member string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.clock.Now(); p.count == nil || now.Sub(p.began) >= handshakeSpan || now.Before(p.began) {
		p.began, p.count = now, map[string]int{}
	}
	p.count[member]++
	return p.count[member] <= maxHandshakes
}

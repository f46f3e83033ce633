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

var errPace = errors.New("the member connects too often")

// A door lets in members that have a certificate of the authority, each member only so often.
type door struct {
	credentials.TransportCredentials
	metrics *metrics
	pace    *pace
}

// ServerHandshake implements [credentials.TransportCredentials].
func (d *door) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := d.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		d.metrics.handshakes.WithLabelValues("refused").Inc()
		return nil, nil, err
	}
	if !d.pace.allows(certificateOf(info).Subject.CommonName) {
		d.metrics.handshakes.WithLabelValues("too often").Inc()
		return nil, nil, errors.Join(errPace, conn.Close())
	}
	d.metrics.handshakes.WithLabelValues("accepted").Inc()
	return conn, info, nil
}

// ClientHandshake implements [credentials.TransportCredentials].
func (*door) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a door is a server's")
}

// Clone implements [credentials.TransportCredentials].
func (d *door) Clone() credentials.TransportCredentials {
	return &door{TransportCredentials: d.TransportCredentials.Clone(), metrics: d.metrics, pace: d.pace}
}

// A member connects again when its Secret changes and when the leader does. A few of its
// replicas may do so one after another.
const (
	paceSpan = 10 * time.Second
	paceMost = 30 // handshakes of one member in a span
)

// A pace counts handshakes of each member. It is safe for concurrent use.
type pace struct {
	clock clock.PassiveClock

	mu    sync.Mutex // guards all below
	began time.Time
	count map[string]int // by member, since began
}

func newPace(c clock.PassiveClock) *pace { return &pace{clock: c} }

// allows reports whether the member may shake hands once more.
func (p *pace) allows(member string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.clock.Now(); p.count == nil || now.Sub(p.began) >= paceSpan || now.Before(p.began) {
		p.began, p.count = now, map[string]int{}
	}
	p.count[member]++
	return p.count[member] <= paceMost
}

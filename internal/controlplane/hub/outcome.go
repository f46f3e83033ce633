package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/weir-dev/weir/pkg/store"
)

// An outcome is why the last attempt to connect was refused by either side, as opposed to
// one that failed. gRPC calls both unavailable.
type outcome struct {
	control store.Control // of addresses; nil allows all

	last   atomic.Pointer[error]
	failed atomic.Pointer[error] // why the last attempt failed in whatever way; nil when it did not
}

// refused returns why the hub cannot be talked to until somebody changes something; nil
// when that is not known.
func (c *connection) refused() error {
	leaf := c.certificate.Leaf
	out := &RefusedError{Endpoint: c.endpoint}
	last := c.outcome.last.Load()
	switch {
	case last == nil && time.Now().After(leaf.NotAfter), last != nil && alert(*last) == "expired certificate":
		out.Reason, out.Message = CertificateExpired, expired(c.member(), leaf)
	case last == nil:
		return nil
	case alert(*last) != "":
		out.Reason = Unauthorized
		out.Message = "it refuses the certificate (" + alert(*last) + "): " + copySecret(c.member())
	default:
		out.Reason = Untrusted
		out.Message = unreached(*last) + "; let --federation-sans of its controller name the host of the endpoint, and copy Secret " +
			MemberPrefix + c.member() + " again if it is another hub"
		out.Cause = *last
	}
	return out
}

// certificateAlerts are what a server of TLS says when it does not accept a client's
// certificate, after the "tls: " that crypto/tls puts before.
var certificateAlerts = []string{
	"expired certificate", "bad certificate", "unsupported certificate", "revoked certificate", "unknown certificate",
	"unknown certificate authority", "certificate required", "access denied",
}

// alert returns what the server said of the certificate; "" when the error is another.
func alert(err error) string {
	var remote *net.OpError
	if !errors.As(err, &remote) || remote.Op != "remote error" {
		return ""
	}
	said := strings.TrimPrefix(remote.Err.Error(), "tls: ")
	if !slices.Contains(certificateAlerts, said) {
		return ""
	}
	return said
}

// dial connects. When it fails nobody has refused anything.
func (v *outcome) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{ControlContext: v.control}).DialContext(ctx, "tcp", address)
	if err != nil {
		v.last.Store(nil)
		v.failed.Store(&err)
	}
	return conn, err
}

// note remembers why a handshake failed, and whether that is a refusal.
func (v *outcome) note(err error) {
	v.failed.Store(&err)
	untrusted := (*tls.CertificateVerificationError)(nil)
	if errors.As(err, &untrusted) || alert(err) != "" {
		v.last.Store(&err)
	}
}

// A witness sees what becomes of handshakes.
type witness struct {
	credentials.TransportCredentials
	outcome *outcome
}

// ClientHandshake implements [credentials.TransportCredentials]. In TLS 1.3 the server
// looks at the certificate when the client has finished: only its first byte, which a
// server of gRPC sends unasked, says that it accepts it. Nothing is sent before, because
// what it says instead would be lost with a connection that it resets.
func (w *witness) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	w.outcome.last.Store(nil)
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		w.outcome.note(err)
		return nil, nil, err
	}
	accepted := &accepted{Conn: conn}
	if err := accepted.await(ctx); err != nil {
		w.outcome.note(err)
		return nil, nil, errors.Join(err, conn.Close())
	}
	w.outcome.failed.Store(nil)
	return accepted, info, nil
}

// Clone implements [credentials.TransportCredentials].
func (w *witness) Clone() credentials.TransportCredentials {
	return &witness{TransportCredentials: w.TransportCredentials.Clone(), outcome: w.outcome}
}

// An accepted connection has its first byte already.
type accepted struct {
	net.Conn
	first []byte // until it is read
}

// await reads the first byte, until ctx is done at most.
func (a *accepted) await(ctx context.Context) error {
	undone := context.AfterFunc(ctx, func() { _ = a.SetReadDeadline(time.Now()) }) // fails when it is closed
	first := make([]byte, 1)
	if _, err := io.ReadFull(a.Conn, first); err != nil {
		undone()
		return err
	}
	a.first = first
	if !undone() {
		return ctx.Err()
	}
	return nil
}

// Read implements [net.Conn].
func (a *accepted) Read(b []byte) (int, error) {
	if len(a.first) == 0 {
		return a.Conn.Read(b)
	}
	n := copy(b, a.first)
	a.first = a.first[n:]
	return n, nil
}

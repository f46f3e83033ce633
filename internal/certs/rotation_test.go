package certs

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestNoHandshakeFailsAcrossRotations connects without a pause while the clock
// runs through years of rotations, trusting only what was published at the start.
func TestNoHandshakeFailsAcrossRotations(t *testing.T) {
	const clients, rotations, handshakesPerRotation = 2, 50, 20
	clk := clocktesting.NewFakeClock(epoch)
	o := options()
	o.Clock = clk
	c := cluster().Build()
	// The replica that serves is not the one that renews: it has to follow.
	serving, other := New(c, o), New(c, o)
	mustReconcile(t, serving)
	mustReconcile(t, other)
	address := serve(t, serving)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(serving.CABundle()) {
		t.Fatal("the CA bundle holds no certificate")
	}
	config := &tls.Config{RootCAs: roots, ServerName: names[0], Time: clk.Now, MinVersion: tls.VersionTLS13}

	serials := map[string]bool{}
	for range rotations {
		var done sync.WaitGroup
		for range clients {
			done.Go(func() {
				for range handshakesPerRotation {
					handshake(t, address, config)
				}
			})
		}
		clk.Step(servingLife*2/3 + defaultInterval)
		mustReconcile(t, other)
		mustReconcile(t, serving)
		done.Wait()
		serials[serving.memory().serving.certificate.SerialNumber.String()] = true
	}
	if len(serials) != rotations {
		t.Errorf("%d certificates were served after the first, want %d", len(serials), rotations)
	}
}

func handshake(t *testing.T, address string, config *tls.Config) {
	t.Helper()
	dialer := &tls.Dialer{Config: config}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Errorf("handshake: %v", err)
		return
	}
	_ = conn.Close()
}

// serve finishes TLS handshakes on loopback with the manager's certificates and
// returns its address.
func serve(t *testing.T, m *Manager) string {
	t.Helper()
	config := &tls.Config{GetCertificate: m.GetCertificate, MinVersion: tls.VersionTLS13}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { finish(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
	})
	return listener.Addr().String()
}

// finish completes the handshake and waits until the client hangs up.
func finish(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1))
	_ = conn.Close()
}

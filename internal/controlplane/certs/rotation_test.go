package certs

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNoHandshakeFailsAcrossRotations connects 10,400 times without a pause while the
// clock runs through seven years of rotations, the authority's among them. Half of the
// clients trust what was published at the start, as sidecars do, and half what is
// published now, as the API server does.
func TestNoHandshakeFailsAcrossRotations(t *testing.T) {
	const rotations = 130
	handshakesPerRotation := 40 // of each of two clients
	if testing.Short() {
		handshakesPerRotation = 4
	}
	clk := clocktesting.NewFakeClock(epoch)
	o := options()
	o.Clock = clk
	c := cluster().Build()
	// The replica that serves is not the one that renews: it has to follow.
	serving, other := New(c, o), New(c, o)
	mustReconcile(t, serving)
	mustReconcile(t, other)
	address := serve(t, serving)
	trusting := func(bundle []byte) *tls.Config {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bundle) {
			t.Fatal("the CA bundle holds no certificate")
		}
		return &tls.Config{RootCAs: roots, ServerName: names[0], Time: clk.Now, MinVersion: tls.VersionTLS13}
	}
	first := trusting(serving.CABundle())

	serials, authorities := map[string]bool{}, map[string]bool{}
	for range rotations {
		var done sync.WaitGroup
		authorities[string(other.CABundle())] = true
		for _, config := range []*tls.Config{first, trusting(published(t, c))} {
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
	if len(authorities) != 2 {
		t.Errorf("the authority had %d certificates, want that of the start and one more", len(authorities))
	}
	if len(serials) != rotations {
		t.Errorf("%d certificates were served after the first, want %d", len(serials), rotations)
	}
}

// published returns what the API server is configured to trust.
func published(t *testing.T, c client.Client) []byte {
	t.Helper()
	var injector admissionv1.MutatingWebhookConfiguration
	if err := c.Get(t.Context(), types.NamespacedName{Name: "weir-injector"}, &injector); err != nil {
		t.Fatal(err)
	}
	return injector.Webhooks[0].ClientConfig.CABundle
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

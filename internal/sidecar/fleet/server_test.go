package fleet_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
)

const serverName = "weir-fleet.weir-system.svc"

// A controller is a fleet server whose sessions a test plays by hand.
type controller struct {
	fleetpb.UnimplementedFleetServer
	address  string
	ca       []byte
	sessions chan *session
}

// A session is one stream, as the controller sees it.
type session struct {
	fleetpb.Fleet_ConnectServer
	token    string
	received chan *fleetpb.FromHolder // closed when the holder is gone
	end      chan error
}

// Connect implements fleetpb.FleetServer.
func (c *controller) Connect(stream fleetpb.Fleet_ConnectServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	s := &session{
		Fleet_ConnectServer: stream,
		received:            make(chan *fleetpb.FromHolder, 1024),
		end:                 make(chan error, 1),
	}
	if tokens := md.Get("authorization"); len(tokens) == 1 {
		s.token = tokens[0]
	}
	c.sessions <- s
	go func() {
		defer close(s.received)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			s.received <- m
		}
	}()
	select {
	case err := <-s.end:
		return err
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

// newController serves until the test ends.
func newController(t *testing.T) *controller {
	t.Helper()
	certificate, ca := newCertificate(t)
	return newReplica(t, certificate, ca)
}

// newControllers returns two with the same certificate.
func newControllers(t *testing.T) (leader, other *controller) {
	t.Helper()
	certificate, ca := newCertificate(t)
	return newReplica(t, certificate, ca), newReplica(t, certificate, ca)
}

func newReplica(t *testing.T, certificate tls.Certificate, ca []byte) *controller {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &controller{address: listener.Addr().String(), ca: ca, sessions: make(chan *session, 16)}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13,
	})))
	fleetpb.RegisterFleetServer(server, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return c
}

func newCertificate(t *testing.T) (certificate tls.Certificate, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{serverName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// config returns the configuration of a client of c whose token is in a file.
func (c *controller) config(t *testing.T) (cfg fleet.Config, tokenFile string) {
	t.Helper()
	tokenFile = filepath.Join(t.TempDir(), "token")
	writeToken(t, tokenFile, "first")
	return fleet.Config{
		Address: c.address, ServerName: serverName, CABundle: c.ca, TokenFile: tokenFile,
		Identity: fleet.Identity{Namespace: "shop", Pod: "checkout-1", PodUID: "uid", BootNonce: "nonce", Version: "v1", Capture: "none", Mode: "bypass"},
		Log:      slog.New(slog.DiscardHandler),
	}, tokenFile
}

func writeToken(t *testing.T, file, token string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

const patience = 10 * time.Second

// accept returns the next session.
func (c *controller) accept(t *testing.T) *session {
	t.Helper()
	select {
	case s := <-c.sessions:
		return s
	case <-time.After(patience):
		t.Fatal("no sidecar connects")
		return nil
	}
}

// welcome accepts a session and answers its hello.
func (c *controller) welcome(t *testing.T, term uint64) (*session, *fleetpb.Hello) {
	t.Helper()
	s := c.accept(t)
	hello := s.next(t).GetHello()
	if hello == nil {
		t.Fatal("the first message is not a hello")
	}
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Welcome{
		Welcome: &fleetpb.Welcome{Term: term, ReportIntervalMillis: 20},
	}})
	return s, hello
}

func (s *session) say(t *testing.T, m *fleetpb.ToHolder) {
	t.Helper()
	if err := s.Send(m); err != nil {
		t.Fatal(err)
	}
}

// next returns the next message, nil when the holder is gone.
func (s *session) next(t *testing.T) *fleetpb.FromHolder {
	t.Helper()
	select {
	case m := <-s.received:
		return m
	case <-time.After(patience):
		t.Fatal("the sidecar says nothing")
		return nil
	}
}

// expect returns the next message for which pick returns something.
func expect[T any](t *testing.T, s *session, pick func(*fleetpb.FromHolder) *T) *T {
	t.Helper()
	for {
		m := s.next(t)
		if m == nil {
			t.Fatal("the sidecar is gone")
		}
		if found := pick(m); found != nil {
			return found
		}
	}
}

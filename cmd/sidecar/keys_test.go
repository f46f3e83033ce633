package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	invented  = 160_000   // values of the flood: more than maxKeys, and more than the memory holds
	perWindow = 1_000_000 // requests of each value
	lasts     = 3600 * limiter.Second
	ahead     = 50 // requests of a connection that are sent before the first answer is read
)

// A controller keeps the counters of the sidecar: it grants all it is asked for, of windows by its
// clock.
type controller struct {
	fleetpb.UnimplementedFleetServer

	snapshot []byte
	version  string
}

// Connect implements fleetpb.FleetServer.
func (c *controller) Connect(stream fleetpb.Fleet_ConnectServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		var answers []*fleetpb.ToHolder
		switch m := m.GetMessage().(type) {
		case *fleetpb.FromHolder_Await:
			answers = append(answers, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lead{Lead: &fleetpb.Lead{Term: 1}}})
		case *fleetpb.FromHolder_Hello:
			answers = append(answers,
				&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Welcome{Welcome: &fleetpb.Welcome{Term: 1, ReportIntervalMillis: 1000}}},
				&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Config{Config: &fleetpb.Config{Version: c.version, Snapshot: c.snapshot}}},
				&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Holders{Holders: &fleetpb.Holders{
					Counts: []*fleetpb.Holders_Count{{Namespace: "shop", Policy: "checkout", Holders: 1}},
				}}})
		case *fleetpb.FromHolder_Lease:
			if m.Lease.GetId() > 0 {
				answers = append(answers, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lease{Lease: grant(m.Lease)}})
			}
		}
		for _, a := range answers {
			if err := stream.Send(a); err != nil {
				return err
			}
		}
	}
}

func grant(r *fleetpb.LeaseRequest) *fleetpb.LeaseReply {
	now := limiter.Instant(time.Now().UnixMicro())
	w := limiter.Rate{Limit: perWindow, Window: lasts}.WindowAt(now)
	left := int64(w.End().Sub(now))
	return &fleetpb.LeaseReply{
		Id: r.GetId(), Granted: r.GetWant(), Remaining: perWindow - r.GetWant(), ExpiresInMicros: left, NowMicros: int64(now),
		Limit: perWindow, ResetAfterMicros: left, Term: 1, Algorithm: int32(limiter.FixedWindow), ClockMicros: int64(now),
		Windows: []*fleetpb.Window{{Rate: &fleetpb.Rate{Limit: perWindow, WindowMicros: int64(lasts)}, Index: w.Index, Granted: r.GetWant()}},
	}
}

// serveController returns how a sidecar is started that finds the controller: with a limit by the
// header X-Tenant, and as many values as a policy has by default.
func serveController(t *testing.T) (args, env []string) {
	t.Helper()
	data, version, err := policy.Encode(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
		Consistency:        policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 10, Expiry: policy.Coupled},
		OnStoreUnavailable: policy.Allow, // a machine that is busy may be late to answer
		Limits: []policy.Limit{{
			Name:  "per-tenant",
			Key:   &policy.Key{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}}, OnMissing: policy.Shared, MaxKeys: 100_000},
			Rates: []limiter.Rate{{Limit: perWindow, Window: lasts}},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	const name = "weir-fleet"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	})))
	fleetpb.RegisterFleetServer(server, &controller{snapshot: data, version: version})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return []string{"--fleet-address=" + listener.Addr().String(), "--fleet-server-name=" + name, "--token-file=" + token},
		[]string{
			"WEIR_POD_NAME=checkout-1", "WEIR_POD_UID=uid",
			"WEIR_CA_BUNDLE=" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		}
}

// TestAFloodOfKeysStaysWithinTheContainer: a million values of a key that come once each share
// counters beyond the memory there is, and a client with a value of its own is served.
func TestAFloodOfKeysStaysWithinTheContainer(t *testing.T) {
	args, env := serveController(t)
	s := start(t, build(t), len(floods), args, env...)
	until(t, "the sidecar has no policy", func() bool {
		text, err := s.get(t.Context(), "15020", "/metrics")
		return err == nil && strings.Contains(text, "weir_active_keys{")
	})
	served := serveOther(t, s)
	var sending sync.WaitGroup
	var values, admitted atomic.Int64
	for i := range 32 {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 78, 0, byte(1+i%8))}}
		sending.Go(func() {
			c, err := dialer.DialContext(t.Context(), "tcp", s.inbound())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if err := invent(c, &values, &admitted); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	const figure = `{limit="per-tenant",namespace="shop",policy="checkout"}`
	keys := s.figure(t, "weir_active_keys"+figure)
	t.Logf("%d of %d admitted, %.0f keys, %.0f KiB of keys and %.0f KiB of counts", admitted.Load(), values.Load(), keys,
		s.figure(t, `weir_sidecar_memory_taken_bytes{class="keys"}`)/1024, s.figure(t, `weir_sidecar_memory_taken_bytes{class="counts"}`)/1024)
	for _, class := range []string{"keys", "counts"} {
		if s.figure(t, `weir_sidecar_memory_refused_total{class="`+class+`"}`) == 0 {
			t.Errorf("there was memory for all %s: the flood is too small", class)
		}
	}
	if n := s.figure(t, `weir_keys_full{bound="memory",limit="per-tenant",namespace="shop",policy="checkout"}`); n != 1 {
		t.Errorf("that the memory for keys is used up shows as %v", n)
	}
	after := served.Load() + 50
	until(t, "the other client is not served", func() bool { return served.Load() >= after })
	for i := range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.inbound()+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Tenant", "honest")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("request %d of a client that is new: %s", i, res.Status)
		}
	}
	s.staysWithin(t)
}

// invent sends requests with values that no other has, until there were enough of all.
func invent(c net.Conn, values, admitted *atomic.Int64) error {
	answers := bufio.NewReader(c)
	for {
		first := values.Add(ahead) - ahead
		if first >= invented {
			return nil
		}
		var text strings.Builder
		for i := range int64(ahead) {
			fmt.Fprintf(&text, "GET / HTTP/1.1\r\nHost: a\r\nX-Tenant: %032d\r\n\r\n", first+i)
		}
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := io.WriteString(c, text.String()); err != nil {
			return err
		}
		for range ahead {
			res, err := http.ReadResponse(answers, nil)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				return err
			}
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				admitted.Add(1)
			}
		}
	}
}

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar"
	"github.com/weir-dev/weir/internal/testing/freeport"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	address   = "127.0.0.1" // of all servers
	keyHeader = "X-Tenant"
	// limit is of each key, in each window.
	limit  = 100_000
	window = 3600 * limiter.Second
)

// A subject is a sidecar of this process, with an app behind it.
type subject struct {
	port   string // that the sidecar serves
	leases *atomic.Int64
	ended  <-chan error
}

// start runs the sidecar until ctx is done.
func start(ctx context.Context, dir string) (*subject, error) {
	app, err := new(net.ListenConfig).Listen(ctx, "tcp", address+":0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = server.Serve(app) }() // ends with the process
	c, authority, err := newController()
	if err != nil {
		return nil, err
	}
	fleet, err := c.serve(ctx)
	if err != nil {
		return nil, err
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("token\n"), 0o600); err != nil {
		return nil, err
	}
	free, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	s, port := &subject{port: strconv.Itoa(free), leases: &c.leases}, app.Addr().(*net.TCPAddr).Port
	env := map[string]string{
		"WEIR_POD_NAMESPACE": "shop", "WEIR_POD_NAME": "checkout-1", "WEIR_POD_UID": "uid",
		"WEIR_SANDBOX_IP": address, "WEIR_CA_BUNDLE": authority,
	}
	ended := make(chan error, 1)
	s.ended = ended
	go func() {
		ended <- sidecar.Run(ctx, []string{
			fmt.Sprintf("--inbound=%s:%d", s.port, port), "--admin-address=127.0.0.1:0", "--check-address=127.0.0.1:0", "--rls-address=",
			"--fleet-address=" + fleet, "--fleet-server-name=fleet", "--token-file=" + token,
		}, func(name string) string { return env[name] }, io.Discard, io.Discard)
	}()
	return s, nil
}

// A controller grants all that it is asked for. It does without Weir's own arithmetic, which
// would be counted.
type controller struct {
	fleetpb.UnimplementedFleetServer

	credentials credentials.TransportCredentials
	config      *fleetpb.Config
	leases      atomic.Int64
}

func newController() (c *controller, authority string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fleet"}, DNSNames: []string{"fleet"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, "", err
	}
	data, version, err := policy.Encode(policy.Snapshot{Cluster: "ways", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce, OnStoreUnavailable: policy.Deny,
		Store:       policy.Store{Type: policy.ControllerStore},
		Consistency: policy.Consistency{Mode: policy.Leased, Size: policy.Adaptive, Batch: 10, Min: 1, Max: 100, LowWater: 20, Expiry: policy.Coupled},
		Limits: []policy.Limit{{
			Name: "per-tenant", Rates: []limiter.Rate{{Limit: limit, Window: window}},
			Key: &policy.Key{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}}, OnMissing: policy.Shared, MaxKeys: 10},
		}},
	}}})
	return &controller{
		config: &fleetpb.Config{Version: version, Snapshot: data},
		credentials: credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		}),
	}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), err
}

func (c *controller) serve(ctx context.Context) (at string, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address+":0")
	if err != nil {
		return "", err
	}
	server := grpc.NewServer(grpc.Creds(c.credentials))
	fleetpb.RegisterFleetServer(server, c)
	go func() { _ = server.Serve(listener) }() // ends with the process
	return listener.Addr().String(), nil
}

// Connect implements fleetpb.FleetServer.
func (c *controller) Connect(s fleetpb.Fleet_ConnectServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		var answers []*fleetpb.ToHolder
		switch m := m.Message.(type) {
		case *fleetpb.FromHolder_Hello:
			welcome := &fleetpb.Welcome{Term: 1, ReportIntervalMillis: time.Hour.Milliseconds()}
			answers = []*fleetpb.ToHolder{
				{Message: &fleetpb.ToHolder_Welcome{Welcome: welcome}}, {Message: &fleetpb.ToHolder_Config{Config: c.config}},
			}
		case *fleetpb.FromHolder_Lease:
			c.leases.Add(1)
			answers = []*fleetpb.ToHolder{{Message: &fleetpb.ToHolder_Lease{Lease: grant(m.Lease)}}}
		}
		for _, a := range answers {
			if err := s.Send(a); err != nil {
				return err
			}
		}
	}
}

func grant(r *fleetpb.LeaseRequest) *fleetpb.LeaseReply {
	now := time.Now().UnixMicro()
	left := int64(window) - now%int64(window)
	return &fleetpb.LeaseReply{
		Id: r.Id, Term: 1, Granted: r.Want, Limit: limit, Remaining: limit - r.Want, ExpiresInMicros: left, ResetAfterMicros: left,
		Windows:   []*fleetpb.Window{{Rate: r.Rates[0], Index: now / int64(window), Granted: r.Want}},
		NowMicros: now, ClockMicros: now,
	}
}

package coordinator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// A leader is a Coordinator that leads, and what it works with.
type leader struct {
	*Coordinator
	t        *testing.T
	terms    *memoryTerms
	policies *policies
	listener *bufconn.Listener
	slow     atomic.Pointer[slowness] // of its machine; nil for none
	stop     context.CancelFunc
	stopped  chan error
}

// lead starts a Coordinator and waits until it serves. It has to be stopped
// before its bubble ends.
func lead(t *testing.T, terms *memoryTerms, p *policies, change ...func(*Config)) *leader {
	t.Helper()
	l := newLeader(t, terms, p, change...)
	l.start()
	return l
}

func newLeader(t *testing.T, terms *memoryTerms, p *policies, change ...func(*Config)) *leader {
	t.Helper()
	config := Config{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}, Authenticator: tokens{}, Resolver: p, Terms: terms}
	for _, c := range change {
		c(&config)
	}
	l := &leader{
		Coordinator: New(config), t: t, terms: terms, policies: p,
		listener: bufconn.Listen(16 << 10), stopped: make(chan error, 1),
	}
	l.listen = func(context.Context, string) (net.Listener, error) { return slowListener{l.listener, &l.slow}, nil }
	return l
}

func (l *leader) start() {
	var ctx context.Context
	ctx, l.stop = context.WithCancel(l.t.Context())
	go func() { l.stopped <- l.Start(ctx) }()
	synctest.Wait()
}

// end stops the leader in good order.
func (l *leader) end() {
	l.t.Helper()
	l.stop()
	if err := <-l.stopped; err != nil {
		l.t.Errorf("Start: %v", err)
	}
	l.Close()
}

// A sidecar is the other end of a session.
type sidecar struct {
	t      *testing.T
	conn   *grpc.ClientConn
	stream fleetpb.Fleet_ConnectClient
	close  func()
	next   uint64 // id of a lease request
}

func pod(namespace, name string) podauth.Identity {
	return podauth.Identity{Namespace: namespace, Pod: name, PodUID: name + "-uid"}
}

func helloOf(id podauth.Identity, nonce string) *fleetpb.Hello {
	return &fleetpb.Hello{Namespace: id.Namespace, Pod: id.Pod, PodUid: id.PodUID, BootNonce: nonce}
}

// token is what tokens accepts for the identity.
func tokenOf(id podauth.Identity) string {
	return strings.Join([]string{id.Namespace, id.Pod, id.PodUID}, "/")
}

// dial opens a stream with the token and sends nothing.
func (l *leader) dial(token string) *sidecar {
	l.t.Helper()
	return l.dialBy(token, l.listener.DialContext)
}

// dialBy does so over a connection that connect makes.
func (l *leader) dialBy(token string, connect func(context.Context) (net.Conn, error)) *sidecar {
	l.t.Helper()
	conn, err := grpc.NewClient("passthrough:///fleet",
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return connect(ctx) }),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "fleet"})))
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	stream, err := fleetpb.NewFleetClient(conn).Connect(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	return &sidecar{t: l.t, conn: conn, stream: stream, close: func() { cancel(); _ = conn.Close(); synctest.Wait() }}
}

// connect opens a session and returns it after its welcome.
func (l *leader) connect(id podauth.Identity, nonce string) *sidecar {
	l.t.Helper()
	s := l.dial(tokenOf(id))
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, nonce)}})
	if m := s.recv(); m.GetWelcome() == nil {
		l.t.Fatalf("got %v, want a welcome", m)
	}
	return s
}

func (s *sidecar) send(m *fleetpb.FromHolder) {
	s.t.Helper()
	if err := s.stream.Send(m); err != nil {
		s.t.Fatalf("send: %v", err)
	}
}

func (s *sidecar) recv() *fleetpb.ToHolder {
	s.t.Helper()
	m, err := s.stream.Recv()
	if err != nil {
		s.t.Fatalf("receive: %v", err)
	}
	return m
}

// config waits for a configuration and acknowledges it.
func (s *sidecar) config() policy.Snapshot {
	s.t.Helper()
	m := s.recv().GetConfig()
	if m == nil {
		s.t.Fatal("got no configuration")
	}
	snapshot, err := policy.Decode(m.GetSnapshot())
	if err != nil {
		s.t.Fatal(err)
	}
	s.acknowledge(m.GetVersion(), "")
	synctest.Wait()
	return snapshot
}

func (s *sidecar) acknowledge(version, refusal string) {
	s.t.Helper()
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Acknowledge{
		Acknowledge: &fleetpb.Acknowledge{Version: version, Error: refusal},
	}})
}

// withOne runs f with a leader and one sidecar that enforces the policy, when the first
// window of a second has begun.
func withOne(t *testing.T, p policy.Policy, f func(t *testing.T, l *leader, s *sidecar)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(time.Second)
		f(t, l, s)
	})
}

// lease asks for one unit of a limit of p and returns the answer; change may
// falsify the request.
func (s *sidecar) lease(p policy.Policy, limit policy.Limit, change ...func(*fleetpb.LeaseRequest)) *fleetpb.LeaseReply {
	s.t.Helper()
	s.send(s.leaseRequest(p, limit, change...))
	for {
		m := s.recv()
		if reply := m.GetLease(); reply != nil {
			return reply
		}
		if m.GetHolders() == nil && m.GetConfig() == nil {
			s.t.Fatalf("got %v, want a lease", m)
		}
	}
}

// leaseRequest returns what asks for that.
func (s *sidecar) leaseRequest(p policy.Policy, limit policy.Limit, change ...func(*fleetpb.LeaseRequest)) *fleetpb.FromHolder {
	s.next++
	request := &fleetpb.LeaseRequest{
		Id: s.next, Key: &fleetpb.Key{Namespace: p.Namespace, Policy: p.Name, Limit: limit.Name},
		Generation: p.Generation, Op: int32(limiter.Take), Min: 1, Want: 1,
	}
	for _, r := range limit.Rates {
		request.Rates = append(request.Rates, &fleetpb.Rate{Limit: r.Limit, WindowMicros: int64(r.Window)})
	}
	for _, c := range change {
		c(request)
	}
	return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: request}}
}

// giveBack returns units of the windows that granted them of a limit of 10 a second.
func (s *sidecar) giveBack(units int64, windows []*fleetpb.Window) {
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: &fleetpb.LeaseRequest{
		Key: &fleetpb.Key{Namespace: "shop", Policy: "checkout", Limit: "all"}, Generation: 1,
		Rates: []*fleetpb.Rate{{Limit: 10, WindowMicros: int64(limiter.Second)}},
		Op:    int32(limiter.Return), Want: units, Windows: windows,
	}}})
}

func want(n int64) func(*fleetpb.LeaseRequest) {
	return func(r *fleetpb.LeaseRequest) { r.Want = n }
}

// failure waits for the stream to end and returns why.
func (s *sidecar) failure() error {
	for {
		if _, err := s.stream.Recv(); err != nil {
			return err
		}
	}
}

// report sends rows of one limit.
func (s *sidecar) report(limits ...*fleetpb.LimitReport) {
	s.t.Helper()
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Report{Report: &fleetpb.Report{Limits: limits}}})
	synctest.Wait()
}

// tokens is an Authenticator whose tokens spell the identity out.
type tokens struct{}

func (tokens) Authenticate(_ context.Context, token string) (podauth.Identity, error) {
	parts := strings.Split(token, "/")
	if len(parts) != 3 {
		return podauth.Identity{}, fmt.Errorf("%w: it is %q", podauth.ErrUnauthenticated, token)
	}
	return podauth.Identity{Namespace: parts[0], Pod: parts[1], PodUID: parts[2]}, nil
}

// policies is a Resolver: every pod enforces all policies of its namespace, and its
// pool.
type policies struct {
	mu     sync.Mutex
	synced bool
	takes  time.Duration // to resolve
	read   int           // how often
	all    []policy.Policy
	broken error                   // says what all is without; nil: nothing
	pools  map[string]*policy.Pool // by namespace
	some   []policy.Pool           // of some requests, in every namespace
	secret func(policy.Store) (map[string][]byte, error)
}

var errNotSynced = errors.New("the cache is not synced")

func publishing(all ...policy.Policy) *policies { return &policies{synced: true, all: all} }

func (p *policies) Secret(_ context.Context, of policy.Store) (map[string][]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.secret(of)
}

// keeps has the stores' Secrets hold what secret returns.
func (p *policies) keeps(secret func(policy.Store) (map[string][]byte, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secret = secret
}

func (p *policies) Namespace(_ context.Context, namespace string) (func(context.Context, string, string) (*policy.Snapshot, error), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	time.Sleep(p.takes)
	p.read++
	if !p.synced {
		return nil, errNotSynced
	}
	out, broken := &policy.Snapshot{Cluster: "test", Pool: p.pools[namespace], Pools: slices.Clone(p.some)}, p.broken
	for _, one := range p.all {
		if one.Namespace == namespace {
			out.Policies = append(out.Policies, one)
		}
	}
	return func(context.Context, string, string) (*policy.Snapshot, error) { return out, broken }, nil
}

// reads returns how often a namespace was read.
func (p *policies) reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read
}

// lack has a policy be broken, which all is without, or nil repaired.
func (p *policies) lack(broken error, all ...policy.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken, p.all = broken, all
}

func (p *policies) set(synced bool, all ...policy.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced, p.all = synced, all
}

// limited returns a policy of one limit called "all".
func limited(namespace string, generation, limit int64, window limiter.Micros) policy.Policy {
	return policy.Policy{
		Namespace: namespace, Name: "checkout", Generation: generation,
		Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
		Consistency:        policy.Consistency{Mode: policy.Strict},
		OnStoreUnavailable: policy.Deny,
		Limits:             []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: limit, Window: window}}}},
	}
}

// keyed returns p with its limits kept by client IP.
func keyed(p policy.Policy, maxKeys int) policy.Policy {
	for i := range p.Limits {
		p.Limits[i].Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.ClientIPKey}}, OnMissing: policy.Shared, MaxKeys: maxKeys}
	}
	return p
}

// memoryTerms is a TermStore in memory.
type memoryTerms struct {
	mu   sync.Mutex
	left records.Handover
}

// leads is said by a process that holds the lock.
func leads() bool { return true }

func (m *memoryTerms) Begin(_ context.Context, leads func() bool) (records.Handover, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !leads() {
		return records.Handover{}, records.ErrLapsed
	}
	begun := m.left
	begun.Term++
	m.left = records.Handover{Term: begun.Term}
	return begun, nil
}

func (m *memoryTerms) End(_ context.Context, h records.Handover) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left.Term != h.Term {
		return records.ErrFenced
	}
	m.left = h
	return nil
}

func (m *memoryTerms) Clear(context.Context, uint64) error { return nil }

var certificate, roots = selfSigned()

// selfSigned returns a certificate that is valid in real time and in the bubbles
// of synctest, which begin with the year 2000.
func selfSigned() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"fleet"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

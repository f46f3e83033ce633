package rls_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/proxy/frames"
	"github.com/weir-dev/weir/internal/sidecar/proxy/http1"
	"github.com/weir-dev/weir/internal/sidecar/rls"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A side is a server with all that it counts in, and Envoy's client of it.
type side struct {
	rls.Decider
	*metrics.Metrics
	ratelimitv3.RateLimitServiceClient
	server     *frames.Server
	front      *http1.Server
	address    string
	budget     *membudget.Budget
	connection *grpc.ClientConn
}

// drain drains the server, and so its port.
func (s *side) drain(ctx context.Context) {
	s.front.Drain(ctx)
	s.server.Drain(ctx)
}

// serve serves d until the test ends.
func serve(t testing.TB, d rls.Decider) *side {
	t.Helper()
	s := &side{Decider: d, Metrics: metrics.New(noLimits{})}
	s.server = rls.New(rls.Config{Decider: d, Metrics: s.Metrics, Log: slog.New(slog.DiscardHandler)})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address, s.budget = listener.Addr().String(), membudget.New(64<<20)
	s.front = http1.NewServer(http1.Config{Handler: rls.OnlyHTTP2{}, HTTP2: s.server.Serve, Malformed: func() {}, Memory: s.budget, Log: slog.New(slog.DiscardHandler)})
	done := make(chan error, 1)
	go func() { done <- s.front.Serve(listener, s.budget.Port(true)) }()
	t.Cleanup(func() {
		s.front.Close()
		s.server.Close()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	s.connection = dial(t, s.address)
	s.RateLimitServiceClient = ratelimitv3.NewRateLimitServiceClient(s.connection)
	return s
}

func dial(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type noLimits struct{}

func (noLimits) Limits() []enforce.LimitState { return nil }
func (noLimits) Pools() []pools.State         { return nil }
func (noLimits) Fleet() *fleet.State          { return nil }

// oneStore is the store of every policy.
type oneStore struct{ *twotier.Breaker }

func (s oneStore) Open(policy.Store) (twotier.Store, error) { return s.Breaker, nil }
func (s oneStore) Budget() twotier.Store                    { return s.Breaker }
func (oneStore) Retain(map[policy.Store]bool)               {}

// frozen is the time of a store that stands still, at the start of an hour.
func frozen() limiter.Instant { return 400_000 * 3600 * limiter.Instant(limiter.Second) }

// newStore returns a store of that clock that has nothing forgotten.
func newStore(clock func() limiter.Instant) twotier.Store {
	return memory.New(memory.Options{Clock: clock, First: true})
}

// enforcing returns an enforcer of the policies over s, closed when the test ends.
func enforcing(t testing.TB, s twotier.Store, policies ...policy.Policy) *enforce.Enforcer {
	t.Helper()
	e := enforce.New(enforce.Config{
		Namespace: "shop", Mode: enforce.Enforce, Log: slog.New(slog.DiscardHandler), Stores: oneStore{twotier.NewBreaker(s)},
		NewLimiter: func(c twotier.Config, s twotier.Store) (enforce.Limiter, error) { return twotier.New(c, s) },
	})
	t.Cleanup(func() { e.Close(context.Background()) }) // t.Context is done by then
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(set, "version"); err != nil {
		t.Fatal(err)
	}
	return e
}

// policyOf returns policy checkout, which asks its store for every request.
func policyOf(limits ...policy.Limit) policy.Policy {
	return policy.Policy{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce,
		Store:       policy.Store{Type: policy.ControllerStore},
		Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny,
		Response: policy.Response{IETF: true, XRateLimit: true, Quota: policy.Always, StatusCode: 429, Body: policy.ProblemJSON},
		Limits:   limits,
	}
}

// limitOf returns a limit of n a window on descriptors with the key, for each of its
// values.
func limitOf(key string, n int64, window limiter.Micros) policy.Limit {
	return policy.Limit{
		Name:  key,
		Match: []policy.Match{{Descriptors: []policy.DescriptorMatch{{Key: key}}}},
		Key:   &policy.Key{Parts: []policy.KeyPart{{Type: policy.DescriptorKey, Name: key}}, OnMissing: policy.Skip, MaxKeys: 100},
		Rates: []limiter.Rate{{Limit: n, Window: window}},
	}
}

// call returns a call of a domain, with one descriptor for each line of entries such
// as "user=ann path=/".
func call(domain string, lines ...string) *ratelimitv3.RateLimitRequest {
	in := &ratelimitv3.RateLimitRequest{Domain: domain}
	for _, line := range lines {
		d := new(commonv3.RateLimitDescriptor)
		for pair := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(pair, "=")
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	return in
}

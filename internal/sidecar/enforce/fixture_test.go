package enforce_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

const hour = 3600 * limiter.Second

// newStore returns a store whose memory began just before the hour that is open.
// Its time is then the hour's start plus what elapsed returns.
func newStore(elapsed func() limiter.Micros) *memory.Store {
	began := limiter.Instant(400_000 * hour)
	booted := false
	return memory.New(memory.Options{Clock: func() limiter.Instant {
		if !booted {
			booted = true // by New, before the store is shared
			return began - 10
		}
		return began.Add(elapsed())
	}})
}

// frozen is a time that does not pass.
func frozen() limiter.Micros { return 0 }

// fixed hands every policy the same store, and records what is retained.
type fixed struct {
	store    twotier.Store
	retained chan map[policy.Store]bool // nil when the test ignores it
}

func (f fixed) Open(policy.Store) (twotier.Store, error) { return f.store, nil }

func (f fixed) Budget() twotier.Store { return twotier.NewBreaker(f.store) }

func (f fixed) Retain(used map[policy.Store]bool) {
	if f.retained != nil {
		f.retained <- used
	}
}

// newEnforcer returns an enforcer over s with the real engine, closed when the
// test ends.
func newEnforcer(t testing.TB, s twotier.Store, changes ...func(*enforce.Config)) *enforce.Enforcer {
	t.Helper()
	cfg := enforce.Config{
		Namespace: "shop", Mode: enforce.Enforce, Stores: fixed{store: twotier.NewBreaker(s)},
		Log:        slog.New(slog.DiscardHandler),
		NewLimiter: func(c twotier.Config, s twotier.Store) (enforce.Limiter, error) { return twotier.New(c, s) },
	}
	for _, change := range changes {
		change(&cfg)
	}
	e := enforce.New(cfg)
	t.Cleanup(func() { e.Close(context.Background()) }) // t.Context is done by then
	return e
}

// limitOf returns a limit of n an hour.
func limitOf(name string, n int64, changes ...func(*policy.Limit)) policy.Limit {
	l := policy.Limit{Name: name, Rates: []limiter.Rate{{Limit: n, Window: hour}}}
	for _, change := range changes {
		change(&l)
	}
	return l
}

func under(prefix string) func(*policy.Limit) {
	return func(l *policy.Limit) {
		l.Match = []policy.Match{{Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: prefix}}}}
	}
}

func byTenant(onMissing policy.OnMissing) func(*policy.Limit) {
	return func(l *policy.Limit) {
		l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}}, OnMissing: onMissing, MaxKeys: 100}
	}
}

// policyOf returns policy checkout with the limits.
func policyOf(limits ...policy.Limit) policy.Policy {
	return policy.Policy{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce,
		Store:              policy.Store{Type: policy.ControllerStore},
		Consistency:        policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 10, Expiry: policy.Coupled},
		OnStoreUnavailable: policy.Deny,
		Limits:             limits,
	}
}

func apply(t testing.TB, e *enforce.Enforcer, policies ...policy.Policy) {
	t.Helper()
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(set, "version"); err != nil {
		t.Fatal(err)
	}
}

// get returns a request from a line of target and headers.
func get(line string) *http.Request {
	words := strings.Fields(line)
	r := httptest.NewRequest(http.MethodGet, words[0], nil)
	for _, h := range words[1:] {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Set(name, value)
	}
	return r
}

// admit sends n requests and returns how many were admitted.
func admit(t testing.TB, e *enforce.Enforcer, n int, line string) (admitted int) {
	t.Helper()
	for range n {
		v, err := e.Decide(context.Background(), get(line))
		if err != nil {
			t.Fatal(err)
		}
		if v.Allowed {
			admitted++
		}
	}
	return admitted
}

// sessions numbers sessions. Each is sent everything again.
var sessions atomic.Uint64

// counted returns what the enforcer reports of the limit, summed over its rows.
func counted(e *enforce.Enforcer, limit string) *fleetpb.WindowReport {
	sum := new(fleetpb.WindowReport)
	for _, r := range e.Report(time.Now(), sessions.Add(1)) {
		if r.GetLimit() != limit {
			continue
		}
		for _, w := range r.GetWindows() {
			sum.Admitted += w.GetAdmitted()
			sum.Refused += w.GetRefused()
			sum.Local += w.GetLocal()
		}
	}
	return sum
}

// engine is an engine that a test scripts.
type engine struct {
	acquire func(value string, cost int64) (twotier.Decision, error)
	peeked  func(ctx context.Context) // nil when the test ignores it
	closed  chan struct{}
	swapped []twotier.Store
}

func (e *engine) Acquire(_ context.Context, r twotier.Request) (twotier.Decision, error) {
	return e.acquire(r.Value, r.Cost)
}

func (e *engine) Peek(ctx context.Context, r twotier.Request) (twotier.Forecast, error) {
	if e.peeked != nil {
		e.peeked(ctx)
	}
	d, err := e.acquire(r.Value, r.Cost)
	return twotier.Forecast{Decision: d}, err
}
func (*engine) Reconfigure(twotier.Config)               {}
func (e *engine) Swap(_ twotier.Config, s twotier.Store) { e.swapped = append(e.swapped, s) }
func (*engine) SetHolders(int64)                         {}
func (*engine) Stats() twotier.Stats                     { return twotier.Stats{} }
func (*engine) Credits() int64                           { return 0 }
func (e *engine) Close(context.Context)                  { close(e.closed) }

// scripted makes every limit decide by f.
func scripted(f func(value string, cost int64) (twotier.Decision, error)) func(*enforce.Config) {
	return func(c *enforce.Config) {
		c.NewLimiter = func(twotier.Config, twotier.Store) (enforce.Limiter, error) {
			return &engine{acquire: f, closed: make(chan struct{})}, nil
		}
	}
}

package rls_test

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// noPool needs no slots.
type noPool struct{}

func (noPool) Acquire(*http.Request) (pools.Slot, *pools.Refusal) { return pools.Slot{}, nil }

// TestCallsAndRequestsShareTheLimit sends calls, of several descriptors that others
// may refuse, and requests through the proxy at once: together they are admitted
// exactly the limit.
func TestCallsAndRequestsShareTheLimit(t *testing.T) {
	const most = 2000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	shared := policy.Limit{Name: "shared", Rates: []limiter.Rate{{Limit: most, Window: hour}}}
	p := policyOf(shared, limitOf("user", 100, hour))
	p.Consistency = policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 50, Expiry: policy.Coupled}
	e := enforcing(t, newStore(frozen), p)
	s := serve(t, e)
	side := proxy.New(proxy.Config{
		Target: "127.0.0.1:1", Pool: noPool{}, Decider: e, Metrics: metrics.New(noLimits{}), Log: slog.New(slog.DiscardHandler),
	})

	var admitted atomic.Int64
	var all sync.WaitGroup
	for i := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, i))
		all.Go(func() {
			for range 300 {
				in := call("*", "user="+string(rune('a'+rng.IntN(5))), "user="+string(rune('a'+rng.IntN(5))), "path=/")
				in.HitsAddend = 1 + rng.Uint32N(4)
				out, err := s.ShouldRateLimit(t.Context(), in)
				if err != nil {
					t.Error(err)
				}
				if out.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
					admitted.Add(int64(in.GetHitsAddend()))
				}
			}
		})
		all.Go(func() {
			for range 600 {
				if pass(t, side) {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got := admitted.Load(); got > most {
		t.Errorf("admitted %d of %d", got, most)
	}
	// Units held by a call that another limit refused may have come back after the last
	// request.
	for range most {
		if !pass(t, side) {
			break
		}
		admitted.Add(1)
	}
	if got := admitted.Load(); got != most {
		t.Errorf("admitted %d of %d in the end", got, most)
	}
	for _, r := range e.Report(time.Now(), 1) {
		if got := r.GetAdmittedTotal(); r.GetLimit() == "shared" && got != most {
			t.Errorf("counted %d of %d", got, most)
		}
	}
}

// pass reports whether a request gets through a proxy.
func pass(t *testing.T, p *proxy.Proxy) bool {
	t.Helper()
	x := p.Enter(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if x == nil {
		return false
	}
	x.End(exchange.Complete)
	return true
}

package proxy_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/internal/sidecar/recent"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A fullPool gives no slot.
type fullPool struct{ policy.Pool }

func (p *fullPool) Acquire(*http.Request) (pools.Slot, *pools.Refusal) {
	return pools.Slot{}, &pools.Refusal{Verdict: concurrency.Overflow, Pool: &p.Pool, Limit: 4}
}

// TestRefusalsAreKept plays each kind of answer that is not the app's. An answer of the app is not kept.
func TestRefusalsAreKept(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	down := listener.Addr().String()
	app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	byUser := func(r *http.Request) (enforce.Verdict, error) {
		v, err := refusal(enforce.QuotaExceeded, twotier.Decision{RetryAfter: 2 * time.Second}, limiter.Rate{Limit: 5, Window: limiter.Second})(r)
		v.Refusal.Value = "ann"
		return v, err
	}
	full := &fullPool{policy.Pool{Namespace: "shop", Name: "backend", StatusCode: http.StatusServiceUnavailable}}
	for name, tc := range map[string]struct {
		app    string
		pool   proxy.Pool
		decide decider
		memory int64 // of the sidecar
		field  string
		want   recent.Refusal // but for what is of the request
	}{
		"a limit": {app: app, decide: byUser, want: recent.Refusal{
			Status: 429, Reason: "QUOTA_EXCEEDED", Object: "ratelimitpolicy/checkout", Limit: "per-tenant", Hash: store.HashValue("ann"), RetryAfter: "2",
			Detail: `limit "per-tenant" of policy "checkout" admits 5 per 1s`,
		}},
		"a pool": {app: app, pool: full, decide: admit, want: recent.Refusal{
			Status: 503, Reason: "NO_SLOT", Object: "concurrencypool/backend", RetryAfter: "1",
			Detail: `pool "backend" is full: its limit is 4, and this pod has no part of it at the moment, and its queue is full, too`,
		}},
		"no memory": {app: app, decide: admit, memory: 100 << 10, want: recent.Refusal{
			Status: 503, Reason: "NO_MEMORY", RetryAfter: "1", Detail: "the sidecar has no memory left for the request",
		}},
		"no app": {app: down, decide: admit, want: recent.Refusal{Status: 502, Detail: "the app behind the rate limiter did not answer"}},
		"a defect": {
			app: app, decide: func(*http.Request) (enforce.Verdict, error) { return enforce.Verdict{}, errors.New("defect") },
			want: recent.Refusal{Status: 500, Detail: "the rate limiter failed"},
		},
		"an underscore": {app: app, decide: admit, field: "a_b", want: recent.Refusal{Status: 400, Detail: "the name of a header field has an underscore"}},
		"the app":       {app: app, decide: admit},
	} {
		t.Run(name, func(t *testing.T) {
			var ring recent.Ring
			if tc.pool == nil {
				tc.pool = noPool{}
			}
			if tc.memory == 0 {
				tc.memory = 1 << 40
			}
			p := proxy.New(proxy.Config{
				Target: tc.app, Pool: tc.pool, Decider: tc.decide, Metrics: metrics.New(noLimits{}), Log: slog.New(slog.DiscardHandler),
				Recent: &ring, Underscores: proxy.RefuseUnderscores,
			})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			serveOn(t, p, l, membudget.New(tc.memory).Port(true))
			r := newRequest(t, http.MethodPut, "http://"+l.Addr().String()+"/v1/orders?secret=canary", strings.NewReader("a body"))
			r.Header.Set("X-Request-Id", "r-1")
			if tc.field != "" {
				r.Header[tc.field] = []string{"x"}
			}
			before := time.Now()
			do(t, client(t, false), r)
			all, added := ring.All()
			if tc.want.Status == 0 {
				if added != 0 {
					t.Errorf("it keeps %+v", all)
				}
				return
			}
			if added != 1 {
				t.Fatalf("it keeps %+v", all)
			}
			got := all[0]
			if got.Time.Before(before) || got.Time.After(time.Now()) {
				t.Errorf("the time is %v", got.Time)
			}
			tc.want.Time, tc.want.RequestID, tc.want.Method, tc.want.Path = got.Time, "r-1", "PUT", "/v1/orders"
			if got != tc.want {
				t.Errorf("it keeps\n%+v, want\n%+v", got, tc.want)
			}
		})
	}
}

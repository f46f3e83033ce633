package proxy_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// oneStore is the store of every policy.
type oneStore struct{ *twotier.Breaker }

func (s oneStore) Open(policy.Store) (twotier.Store, error) { return s.Breaker, nil }
func (s oneStore) Budget() twotier.Store                    { return s.Breaker }
func (oneStore) Retain(map[policy.Store]bool)               {}

func now() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }

// enforcing serves a proxy in front of app that enforces one limit, and returns its
// address and the enforcer.
func enforcing(t *testing.T, app string, l policy.Limit) (string, *enforce.Enforcer) {
	t.Helper()
	return enforcingAll(t, app, policy.Enforce, policy.DefaultResponse(), l)
}

// enforcingAll serves a proxy in front of app that enforces a policy, as enforcing does.
func enforcingAll(t *testing.T, app string, mode policy.Mode, response policy.Response, limits ...policy.Limit) (string, *enforce.Enforcer) {
	t.Helper()
	e := enforce.New(enforce.Config{
		Namespace: "shop", Mode: enforce.Enforce, Log: slog.New(slog.DiscardHandler),
		Stores:     oneStore{twotier.NewBreaker(memory.New(memory.Options{Clock: now, First: true}))},
		NewLimiter: func(c twotier.Config, s twotier.Store) (enforce.Limiter, error) { return twotier.New(c, s) },
	})
	t.Cleanup(func() { e.Close(context.Background()) }) // t.Context is done by then
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Mode: mode, Response: response, Store: policy.Store{Type: policy.ControllerStore},
		Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny, Limits: limits,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(set, "v"); err != nil {
		t.Fatal(err)
	}
	p := proxy.New(proxy.Config{Target: app, Pool: noPool{}, Decider: e, Metrics: metrics.New(noLimits{}), Log: slog.New(slog.DiscardHandler)})
	return serve(t, p), e
}

// admittedOf returns the units that the limit counted as admitted.
func admittedOf(e *enforce.Enforcer) int64 { return e.Report(time.Now(), 1)[0].GetAdmittedTotal() }

// shaper lets 20 a second through, evenly.
func shaper(maxDelay limiter.Micros) policy.Limit {
	return policy.Limit{
		Name: "even", Algorithm: policy.LeakyBucket, MaxDelay: maxDelay,
		Rates: []limiter.Rate{{Limit: 20, Window: limiter.Second}},
	}
}

func TestRequestsWaitForTheirTurn(t *testing.T) {
	app := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	address, e := enforcing(t, app, shaper(limiter.Second))
	c := client(t, false)
	const requests = 4
	start := time.Now()
	for range requests {
		if res, _ := do(t, c, newRequest(t, http.MethodGet, "http://"+address+"/", nil)); res.StatusCode != http.StatusOK {
			t.Fatalf("got %s", res.Status)
		}
	}
	if took := time.Since(start); took < (requests-1)*50*time.Millisecond {
		t.Errorf("%d requests passed in %v, faster than one in 50ms", requests, took)
	}
	if n := admittedOf(e); n != requests {
		t.Errorf("counted %d admitted, want %d", n, requests)
	}
}

// TestAClientThatLeavesGivesItsTurnBack: what it waited for is neither let through
// nor counted.
func TestAClientThatLeavesGivesItsTurnBack(t *testing.T) {
	reached := make(chan struct{}, 2)
	app := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- struct{}{} }))
	l := shaper(60 * limiter.Second)
	l.Rates[0] = limiter.Rate{Limit: 1, Window: 60 * limiter.Second}
	address, e := enforcing(t, app, l)
	c := client(t, false)
	do(t, c, newRequest(t, http.MethodGet, "http://"+address+"/", nil)) // has its turn at once
	<-reached
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if res, err := c.Do(newRequest(t, http.MethodGet, "http://"+address+"/", nil).WithContext(ctx)); err == nil {
		res.Body.Close()
		t.Fatalf("got %s a minute too early", res.Status)
	}
	e.Close(t.Context()) // all that it gives back is back
	if n := admittedOf(e); n != 1 {
		t.Errorf("counted %d admitted, want 1", n)
	}
	if len(reached) > 0 {
		t.Error("the request reached the app")
	}
}

// costly is a limit of 100 units that reserves 10 for each request.
func costly() policy.Limit {
	return policy.Limit{
		Name: "tokens", Rates: []limiter.Rate{{Limit: 100, Window: limiter.MaxWindow}},
		Cost: &policy.Cost{Default: 10, Max: 50, ResponseHeader: "X-Used"},
	}
}

// TestResponsesSayWhatTheirRequestsCost also sees that the header passes.
func TestResponsesSayWhatTheirRequestsCost(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   int64
	}{
		"less than was reserved": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Used", "3") }, 3},
		"nothing":                {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Used", "0") }, 0},
		"not at all":             {func(http.ResponseWriter, *http.Request) {}, 10},
		"no number":              {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Used", "few") }, 10},
		"in a trailer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Used")
			_, _ = io.WriteString(w, "a long answer")
			w.Header().Set("X-Used", "4")
		}, 4},
	} {
		for protocol, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				address, e := enforcing(t, serve(t, tc.answer), costly())
				res, _ := do(t, client(t, http2), newRequest(t, http.MethodGet, "http://"+address+"/", nil))
				if res.StatusCode != http.StatusOK {
					t.Fatalf("got %s", res.Status)
				}
				if said := res.Header.Get("X-Used") + res.Trailer.Get("X-Used"); tc.want != 10 && said == "" {
					t.Error("the client gets no such answer")
				}
				if n := admittedOf(e); n != tc.want {
					t.Errorf("counted %d units, want %d", n, tc.want)
				}
			})
		}
	}
}

// TestWhatWasReservedTooMuchIsThereForOthers sends requests that turn out to cost
// a tenth of what is reserved for them.
func TestWhatWasReservedTooMuchIsThereForOthers(t *testing.T) {
	app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Used", "1") }))
	address, e := enforcing(t, app, costly())
	c := client(t, false)
	for range 40 {
		for began := time.Now(); ; { // what a request gives back may reach the store after the next one asks
			res, _ := do(t, c, newRequest(t, http.MethodGet, "http://"+address+"/", nil))
			if res.StatusCode == http.StatusOK {
				break
			}
			if time.Since(began) > 10*time.Second {
				t.Fatalf("got %s after %d units", res.Status, admittedOf(e))
			}
		}
	}
	if n := admittedOf(e); n != 40 {
		t.Errorf("counted %d units, want 40", n)
	}
}

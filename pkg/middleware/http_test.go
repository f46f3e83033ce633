package middleware_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/middleware"
	"github.com/weir-dev/weir/pkg/twotier"
)

type httpLimit = middleware.Limit[*http.Request]

// byTenant charges each tenant for itself, and nobody who names none.
func byTenant(_ context.Context, r *http.Request) (twotier.Request, bool) {
	tenant := r.Header.Get("X-Tenant")
	return twotier.Request{Value: tenant, Cost: 1}, tenant != ""
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

// answer is what a client sees.
type answer struct {
	Code                             int
	Policy, Left, RetryAfter, Reason string
}

func ask(ctx context.Context, h http.Handler, tenant string) answer {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if tenant != "" {
		r.Header.Set("X-Tenant", tenant)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"), w.Header().Get("Retry-After"), w.Body.String()}
}

func TestHandler(t *testing.T) {
	h := middleware.Handler(ok, httpLimit{Name: "all", Limiter: perMinute(t, 2)})
	var got []answer
	for range 3 {
		got = append(got, ask(t.Context(), h, ""))
	}
	want := []answer{
		{Code: 204, Policy: `"all";q=2;w=60`, Left: `"all";r=1;t=60`},
		{Code: 204, Policy: `"all";q=2;w=60`, Left: `"all";r=0;t=60`},
		{
			Code: 429, Policy: `"all";q=2;w=60`, Left: `"all";r=0;t=60`, RetryAfter: "60",
			Reason: `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
				`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,` +
				`"detail":"limit \"all\" is used up","violated-policies":["all"]}` + "\n",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestEveryTenantHasACounter(t *testing.T) {
	h := middleware.Handler(ok, httpLimit{Name: "tenants", Limiter: perMinute(t, 1), Request: byTenant})
	for _, tc := range []struct {
		tenant string
		want   int
	}{{"a", 204}, {"a", 429}, {"b", 204}, {"b", 429}, {"", 204}, {"", 204}} {
		if got := ask(t.Context(), h, tc.tenant); got.Code != tc.want {
			t.Errorf("a request of tenant %q got %d, want %d", tc.tenant, got.Code, tc.want)
		}
	}
}

func TestARefusedRequestIsChargedNowhere(t *testing.T) {
	all := httpLimit{Name: "all", Limiter: perMinute(t, 3)}
	h := middleware.Handler(ok, all, httpLimit{Name: "tenants", Limiter: perMinute(t, 1), Request: byTenant})
	for i, tc := range []struct {
		tenant string
		want   answer
	}{
		{"a", answer{Code: 204, Left: `"all";r=2;t=60, "tenants";r=0;t=60`}},
		{"a", answer{Code: 429, Left: `"all";r=1;t=60, "tenants";r=0;t=60`}},
		{"b", answer{Code: 204, Left: `"all";r=1;t=60, "tenants";r=0;t=60`}},
		{"c", answer{Code: 204, Left: `"all";r=0;t=60, "tenants";r=0;t=60`}},
		{"d", answer{Code: 429, Left: `"all";r=0;t=60`}},
	} {
		if got := ask(t.Context(), h, tc.tenant); got.Code != tc.want.Code || got.Left != tc.want.Left {
			t.Errorf("request %d got %d and %s, want %d and %s", i, got.Code, got.Left, tc.want.Code, tc.want.Left)
		}
	}
}

func TestAnUnavailableStoreIsNotAnExceededLimit(t *testing.T) {
	denies := httpLimit{Name: "all", Limiter: over(t, away{}, 5, failing(twotier.Deny))}
	got := ask(t.Context(), middleware.Handler(ok, denies), "")
	want := answer{
		Code: 503, RetryAfter: "1",
		Reason: `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",` +
			`"title":"Request cannot be satisfied due to temporary server capacity constraints","status":503,` +
			`"detail":"the counters of limit \"all\" are unavailable","violated-policies":["all"]}` + "\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer with Deny (-want +got):\n%s", diff)
	}
	allows := httpLimit{Name: "all", Limiter: over(t, away{}, 5, failing(twotier.Allow))}
	if diff := cmp.Diff(answer{Code: 204}, ask(t.Context(), middleware.Handler(ok, allows), "")); diff != "" {
		t.Errorf("answer with Allow (-want +got):\n%s", diff)
	}
}

func TestALeakyBucketDelaysRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := middleware.Handler(ok, httpLimit{Name: "all", Limiter: perMinute(t, 60, leaky)})
		began := time.Now()
		for i, want := range []time.Duration{0, time.Second, 3 * time.Second} { // the clock of the store stands still
			if got := ask(t.Context(), h, ""); got.Code != 204 || time.Since(began) != want {
				t.Errorf("request %d got %d after %s, want 204 after %s", i, got.Code, time.Since(began), want)
			}
		}
	})
}

func TestADelayBeyondTheDeadlineRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := httpLimit{Name: "all", Limiter: perMinute(t, 2)}
		h := middleware.Handler(ok, all, httpLimit{Name: "leaky", Limiter: perMinute(t, 60, leaky)})
		if got := ask(t.Context(), h, ""); got.Code != 204 {
			t.Fatalf("the first request got %d", got.Code)
		}
		began := time.Now()
		hurried, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if got := ask(hurried, h, ""); got.Code != 503 || time.Since(began) != 0 {
			t.Errorf("a request with half a second left got %d after %s, want 503 at once", got.Code, time.Since(began))
		}
		if got := ask(t.Context(), middleware.Handler(ok, all), ""); got.Code != 204 {
			t.Errorf("the request after it got %d: the one before is charged", got.Code)
		}
	})
}

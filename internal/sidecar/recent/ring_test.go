package recent_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/recent"
	"github.com/weir-dev/weir/pkg/store"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestOf(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, tc := range []struct {
		name   string
		target string
		fields map[string]string
		source map[string]string
		value  string
		want   recent.Refusal
	}{
		{
			name: "a policy", target: "/v1/orders?token=secret", value: "ann",
			fields: map[string]string{"X-Request-Id": "r-1", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
			source: map[string]string{"policy": "checkout", "limit": "per-user"},
			want: recent.Refusal{
				RequestID: "r-1", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Path: "/v1/orders",
				Object: "ratelimitpolicy/checkout", Limit: "per-user", Hash: store.HashValue("ann"),
			},
		},
		{name: "a pool", target: "/", source: map[string]string{"pool": "backend"}, want: recent.Refusal{Path: "/", Object: "concurrencypool/backend"}},
		{name: "neither", target: "/", want: recent.Refusal{Path: "/"}},
		{
			name: "long texts", target: "/" + long, fields: map[string]string{"X-Request-Id": long, "Traceparent": "00"},
			want: recent.Refusal{Path: "/" + long[:255], RequestID: long[:256]},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, tc.target, http.NoBody)
			for name, value := range tc.fields {
				r.Header.Set(name, value)
			}
			p := problem.Problem{Status: 429, Detail: "too many", Reason: "QUOTA_EXCEEDED", Source: tc.source}
			want := tc.want
			want.Time, want.Method, want.Status, want.Reason, want.RetryAfter, want.Detail = noon, "POST", 429, "QUOTA_EXCEEDED", "7", "too many"
			if got := recent.Of(noon, r, &p, http.Header{"Retry-After": {"7"}}, tc.value); !reflect.DeepEqual(got, want) {
				t.Errorf("it is\n%+v, want\n%+v", got, want)
			}
		})
	}
}

// TestRing: the newest are kept, and come first.
func TestRing(t *testing.T) {
	for _, n := range []int{0, 1, recent.Kept, recent.Kept + 1, 3*recent.Kept + 5} {
		var ring recent.Ring
		for i := range n {
			ring.Add(&recent.Refusal{Path: strconv.Itoa(i)})
		}
		all, added := ring.All()
		if len(all) != min(n, recent.Kept) || added != n {
			t.Fatalf("of %d it has %d, and counts %d", n, len(all), added)
		}
		for i, x := range all {
			if want := strconv.Itoa(n - 1 - i); x.Path != want {
				t.Errorf("of %d, at %d is %s, want %s", n, i, x.Path, want)
			}
		}
	}
}

func TestRingOfSeveral(t *testing.T) {
	var ring recent.Ring
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				ring.Add(&recent.Refusal{})
				ring.All()
			}
		})
	}
	all.Wait()
	if _, added := ring.All(); added != 800 {
		t.Errorf("it counts %d", added)
	}
	(*recent.Ring)(nil).Add(&recent.Refusal{}) // where nothing is kept
}

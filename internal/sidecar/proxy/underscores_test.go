package proxy_test

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
)

func TestUnderscores(t *testing.T) {
	app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		names := slices.Collect(maps.Keys(r.Header))
		for name := range r.Trailer {
			names = append(names, "trailer "+name)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(strings.ToLower(name), "user") })
		slices.Sort(names)
		fmt.Fprint(w, names)
	}))
	const every = "[X-User X_user trailer Y-User trailer Y_user]"
	for name, row := range map[string]struct {
		choice  proxy.Underscores
		grpc    bool
		dropped float64
		want    string
	}{
		"dropped":               {proxy.DropUnderscores, false, 1, "[X-User trailer Y-User]"},
		"passed":                {proxy.PassUnderscores, false, 0, every},
		"refused":               {proxy.RefuseUnderscores, false, 0, ""},
		"of gRPC, not dropped":  {proxy.DropUnderscores, true, 0, every},
		"of gRPC, not refused":  {proxy.RefuseUnderscores, true, 0, every},
		"of a claim to be gRPC": {proxy.DropUnderscores, true, 1, "[X-User trailer Y-User]"},
	} {
		for protocol, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			if row.grpc && http2 != (row.dropped == 0) {
				continue // gRPC is HTTP/2
			}
			t.Run(name+" "+protocol, func(t *testing.T) {
				m := metrics.New(noLimits{})
				p := proxy.New(proxy.Config{
					Target: app, Pool: noPool{}, Decider: decider(admit), Metrics: m, Log: slog.New(slog.DiscardHandler), Underscores: row.choice,
				})
				r := newRequest(t, http.MethodPost, "http://"+serve(t, p), io.MultiReader(strings.NewReader("body")))
				r.Header = http.Header{"X_user": {"root"}, "X-User": {"me"}}
				if row.grpc {
					r.Header.Set("Content-Type", "application/grpc+proto")
				}
				r.Trailer = http.Header{"Y_user": {"root"}, "Y-User": {"me"}}
				res, body := do(t, client(t, http2), r)
				if wanted := map[bool]int{true: 400, false: 200}[row.want == ""]; res.StatusCode != wanted {
					t.Fatalf("the answer is %d, want %d", res.StatusCode, wanted)
				}
				if row.want != "" && body != row.want {
					t.Errorf("the app sees %s, want %s", body, row.want)
				}
				if n := testutil.ToFloat64(m.Dropped); n != row.dropped {
					t.Errorf("%v fields are counted as dropped, want %v", n, row.dropped)
				}
			})
		}
	}
}

func TestTrailersWithUnderscoresAreNotAnnounced(t *testing.T) {
	app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, slices.Sorted(maps.Keys(r.Trailer)))
	}))
	r := newRequest(t, http.MethodPost, "http://"+inFront(t, app, admit), io.MultiReader(strings.NewReader("body")))
	r.Trailer = http.Header{"Y_user": nil, "Y-User": nil}
	if _, body := do(t, client(t, true), r); body != "[Y-User]" {
		t.Errorf("the app is announced %s", body)
	}
}

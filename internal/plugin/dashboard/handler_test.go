package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func get(h http.Handler, host, path string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Host = host
	h.ServeHTTP(w, r)
	return w
}

func one(context.Context) (*Objects, error) {
	p := v1alpha1.RateLimitPolicy{}
	p.Name = "checkout"
	return &Objects{Cluster: "test", Policies: []v1alpha1.RateLimitPolicy{p}}, nil
}

func TestHandler(t *testing.T) {
	h := New("s3cret", one)
	for _, tc := range []struct {
		name, host, path string
		status           int
		kind             string
	}{
		{"the page", "127.0.0.1:8090", "/s3cret/", 200, "text/html; charset=utf-8"},
		{"its program", "localhost:8090", "/s3cret/app.js", 200, "text/javascript; charset=utf-8"},
		{"its style", "[::1]:8090", "/s3cret/style.css", 200, "text/css; charset=utf-8"},
		{"objects", "localhost", "/s3cret/objects", 200, "application/json"},
		{"a site whose name leads here", "evil.example:8090", "/s3cret/objects", 403, ""},
		{"an address that is not of this machine", "192.0.2.1", "/s3cret/objects", 403, ""},
		{"without the secret", "localhost", "/objects", 404, ""},
		{"with another", "localhost", "/secret/", 404, ""},
	} {
		w := get(h, tc.host, tc.path)
		if w.Code != tc.status || tc.kind != "" && w.Header().Get("Content-Type") != tc.kind {
			t.Errorf("%s: got %d, %s", tc.name, w.Code, w.Header().Get("Content-Type"))
		}
		if tc.status == 200 && !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'") {
			t.Errorf("%s: the policy for content is %q", tc.name, w.Header().Get("Content-Security-Policy"))
		}
		if strings.Contains(w.Body.String(), "checkout") != strings.HasPrefix(tc.kind, "application/json") {
			t.Errorf("%s: got %s", tc.name, w.Body)
		}
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/s3cret/objects", http.NoBody)
	r.Host = "localhost"
	if h.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST gets %d", w.Code)
	}
}

// TestPagesShareWhatIsRead: several pages cost the API server what one does, and none shows old figures.
func TestPagesShareWhatIsRead(t *testing.T) {
	reads, now := 0, time.Now()
	var broken error
	h := New("s", func(ctx context.Context) (*Objects, error) {
		reads++
		all, _ := one(ctx)
		all.ReadAt = now
		return all, broken
	})
	h.now = func() time.Time { return now }
	for _, tc := range []struct {
		after  time.Duration
		broken error
		status int
		reads  int
	}{
		{0, nil, 200, 1},
		{freshFor - 1, nil, 200, 1},
		{1, nil, 200, 2},
		{freshFor, errors.New("no route"), 502, 3},
		{0, nil, 200, 4},
	} {
		now, broken = now.Add(tc.after), tc.broken
		w := get(h, "localhost", "/s/objects")
		if w.Code != tc.status || reads != tc.reads {
			t.Errorf("after %v: got %d by %d reads, want %+v", tc.after, w.Code, reads, tc)
		}
		var all Objects
		if tc.status == 200 && (json.Unmarshal(w.Body.Bytes(), &all) != nil || now.Sub(all.ReadAt) >= freshFor) {
			t.Errorf("after %v: got %s", tc.after, w.Body)
		}
		if tc.broken != nil && !strings.Contains(w.Body.String(), "no route") {
			t.Errorf("of an error the page gets %s", w.Body)
		}
	}
}

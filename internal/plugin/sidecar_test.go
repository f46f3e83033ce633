package plugin

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// reach returns a way to a server in the place of a sidecar.
func reach(t *testing.T, server *httptest.Server) sidecar {
	t.Helper()
	dialer := &net.Dialer{}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}}
	t.Cleanup(client.CloseIdleConnections)
	return sidecar{client}
}

// TestSidecarsThatDoNotAnswer: the error has what they say, or the cure.
func TestSidecarsThatDoNotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body, want string
	}{
		"a problem":       {http.StatusNotFound, `{"detail":"no policy is in force"}`, "/v1/peek: the sidecar answers 404 Not Found: no policy is in force"},
		"no body":         {http.StatusServiceUnavailable, "", "/v1/peek: the sidecar answers 503 Service Unavailable"},
		"another version": {http.StatusOK, "[]", "use the plugin of the sidecar's version"},
		"too few answers": {http.StatusOK, `{"limits":[{}]}`, "answers about 1 limits, and was asked about 2"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				w.Write([]byte(tc.body))
			}))
			defer server.Close()
			_, err := reach(t, server).peek(t.Context(), []question{{Policy: "a", Limit: "b"}, {Policy: "a", Limit: "c"}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

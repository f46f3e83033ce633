package sidecar

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

// ownApp replaces the sandbox's app by one that the test can end.
func (s *sandbox) ownApp(t *testing.T, h http.Handler) (app *httptest.Server, port string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(s.ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	app = httptest.NewUnstartedServer(h)
	app.Listener.Close()
	app.Listener = listener
	app.Config.Protocols = new(http.Protocols)
	app.Config.Protocols.SetHTTP1(true)
	app.Config.Protocols.SetUnencryptedHTTP2(true)
	app.Start()
	t.Cleanup(app.Close)
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	s.args = []string{"--inbound=15006:" + port}
	return app, port
}

// requireStopping waits until the sidecar knows that it is to stop.
func (s *sandbox) requireStopping(t *testing.T) {
	t.Helper()
	eventually(t, "the sidecar did not notice the end", func() bool {
		status, _, err := get(t, s.url(15020, "/readyz"))
		return err == nil && status == http.StatusServiceUnavailable
	})
}

// TestLingerLastsAsLongAsTheApp: once signalled to stop, the sidecar takes new connections until
// the app takes none, and keeps none for later.
func TestLingerLastsAsLongAsTheApp(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	app, _ := s.ownApp(t, http.HandlerFunc(hello))
	s.args = append(s.args, "--linger=1h")
	s.start(t)
	s.stop()
	s.requireStopping(t)
	transport := &http.Transport{}
	for range 3 { // each by a new connection, for none is kept
		response, err := (&http.Client{Transport: transport}).Get(s.url(15006, "/"))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK || !response.Close {
			t.Errorf("status %d, connection ends: %t", response.StatusCode, response.Close)
		}
	}
	app.Close()
	s.wait(t)
}

// TestLingerEnds although the app goes on, or where there is no app to look at.
func TestLingerEnds(t *testing.T) {
	for name, inbound := range map[string]bool{"in front of an app that does not end": true, "without a port": false} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t, http.HandlerFunc(hello))
			if !inbound {
				s.args = nil
			}
			s.args = append(s.args, "--linger=6s")
			s.start(t)
			s.stop()
			s.requireStopping(t)
			if conn, err := net.Dial("tcp", net.JoinHostPort(s.ip, "15010")); err != nil {
				t.Errorf("the check API is closed at once: %v", err)
			} else {
				_ = conn.Close()
			}
			s.wait(t)
		})
	}
}

// TestProbesAreNotRequests: the sidecar asks in the kubelet's place as often as the
// kubelet wants, and no limit hears of it.
func TestProbesAreNotRequests(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	app, port := s.ownApp(t, http.HandlerFunc(hello))
	s.args = append(s.args, fmt.Sprintf(`--probe={"container":"app","kind":"readiness","timeoutSeconds":1,"http":{"port":%s}}`, port))
	s.env["WEIR_PROBE_TOKEN"] = "T0KEN"
	_, _, s.env["WEIR_SNAPSHOT"] = snapshotOf(t, policy.Store{Type: policy.RedisStore, Address: silence(t)}, 1)
	s.start(t)
	if status, _, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusServiceUnavailable {
		t.Fatalf("a request: %d, %v; want a refusal, or this proves nothing", status, err)
	}
	for range 20 {
		if status, body, err := get(t, s.url(15020, "/probe/T0KEN/app/readiness")); err != nil || status != http.StatusOK {
			t.Fatalf("a probe: %d %q, %v", status, body, err)
		}
	}
	if status, _, err := get(t, s.url(15020, "/probe/another/app/readiness")); err != nil || status != http.StatusNotFound {
		t.Errorf("a probe by who does not know the token: %d, %v", status, err)
	}
	app.Close()
	if status, _, err := get(t, s.url(15020, "/probe/T0KEN/app/readiness")); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("a probe of an app that is gone: %d, %v", status, err)
	}
}

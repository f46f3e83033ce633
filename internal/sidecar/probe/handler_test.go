package probe

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

const (
	app   = "127.0.0.1"
	token = "T0KEN"
)

func portOf(t *testing.T, a net.Addr) int32 {
	t.Helper()
	_, text, err := net.SplitHostPort(a.String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(port)
}

// serve starts an app and returns its port.
func serve(t *testing.T, h http.HandlerFunc) int32 {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return portOf(t, s.Listener.Addr())
}

func serveTLS(t *testing.T, h http.HandlerFunc) int32 {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return portOf(t, s.Listener.Addr())
}

// serveHealth starts an app that knows gRPC and says so of one service.
func serveHealth(t *testing.T) int32 {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", app+":0")
	if err != nil {
		t.Fatal(err)
	}
	h := health.NewServer()
	h.SetServingStatus("checkout", grpc_health_v1.HealthCheckResponse_SERVING)
	h.SetServingStatus("search", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, h)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return portOf(t, listener.Addr())
}

// closedPort is tcpmux's, which no program serves and no listener is given by chance.
const closedPort = 1

// get asks the handler for the path as the kubelet does.
func get(ctx context.Context, h http.Handler, path string) (status int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
	return w.Code, w.Body.String()
}

func TestProbes(t *testing.T) {
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	babble := func(w http.ResponseWriter, _ *http.Request) { // once it was asked: before, the cause depends on which side is first
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("what?\r\n")); err != nil {
			t.Error(err)
		}
	}
	silent := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	to := func(url string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, url, http.StatusFound)
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	grpcPort := serveHealth(t)
	for name, tc := range map[string]struct {
		target Target
		cause  string // part of the answer; empty: a success
	}{
		"HTTP 200":                                {Target{HTTP: &HTTP{Port: serve(t, answer(200))}}, ""},
		"HTTP 399":                                {Target{HTTP: &HTTP{Port: serve(t, answer(399))}}, ""},
		"HTTP 400":                                {Target{HTTP: &HTTP{Port: serve(t, answer(400))}}, "the app answers 400"},
		"HTTP 503":                                {Target{HTTP: &HTTP{Port: serve(t, answer(503))}}, "the app answers 503"},
		"HTTP, nobody listens":                    {Target{HTTP: &HTTP{Port: closedPort}}, "connection refused"},
		"HTTP, no answer in time":                 {Target{TimeoutSeconds: 1, HTTP: &HTTP{Port: serve(t, silent)}}, "no answer in 1s"},
		"a redirect on the host":                  {Target{HTTP: &HTTP{Port: serve(t, to("/failing"))}}, "the app answers 500"},
		"a redirect to elsewhere":                 {Target{HTTP: &HTTP{Port: serve(t, to("http://elsewhere.invalid/"))}}, ""},
		"a redirect in circles":                   {Target{HTTP: &HTTP{Port: serve(t, to("/"))}}, "10 redirects"},
		"HTTPS with an own certificate":           {Target{HTTP: &HTTP{TLS: true, Port: serveTLS(t, answer(204))}}, ""},
		"HTTPS that fails":                        {Target{HTTP: &HTTP{TLS: true, Port: serveTLS(t, answer(500))}}, "the app answers 500"},
		"HTTPS of what speaks in clear":           {Target{HTTP: &HTTP{TLS: true, Port: serve(t, answer(200))}}, "HTTP response to HTTPS client"},
		"TCP":                                     {Target{TCP: &TCP{Port: serve(t, answer(500))}}, ""},
		"TCP, nobody listens":                     {Target{TCP: &TCP{Port: closedPort}}, "connection refused"},
		"gRPC, the server":                        {Target{GRPC: &GRPC{Port: grpcPort}}, ""},
		"gRPC, a service":                         {Target{GRPC: &GRPC{Port: grpcPort, Service: "checkout"}}, ""},
		"gRPC, one that does not serve":           {Target{GRPC: &GRPC{Port: grpcPort, Service: "search"}}, "NOT_SERVING"},
		"gRPC, one that is not known":             {Target{GRPC: &GRPC{Port: grpcPort, Service: "other"}}, "unknown service"},
		"gRPC, nobody listens":                    {Target{GRPC: &GRPC{Port: closedPort}}, "connection refused"},
		"gRPC of what never answers":              {Target{TimeoutSeconds: 1, GRPC: &GRPC{Port: mute(t)}}, "no answer in 1s"},
		"HTTP of a port that does not speak HTTP": {Target{TimeoutSeconds: 1, HTTP: &HTTP{Port: serve(t, babble)}}, "malformed"},
		"a path that only looks like one":         {Target{HTTP: &HTTP{Port: serve(t, answer(200)), Path: "%zz"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.target.Container, tc.target.Kind = "checkout", Readiness
			status, body := get(t.Context(), New(app, token, []Target{tc.target}), "/probe/T0KEN/checkout/readiness")
			if want := map[bool]int{true: 200, false: 503}[tc.cause == ""]; status != want || !strings.Contains(body, tc.cause) {
				t.Errorf("the answer is %d %q, want %d with %q", status, body, want, tc.cause)
			}
		})
	}
}

// mute accepts connections and says nothing.
func mute(t *testing.T) int32 {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", app+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return portOf(t, listener.Addr())
}

// TestRequest compares what the app gets with what the kubelet would send.
func TestRequest(t *testing.T) {
	var got *http.Request
	port := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r })
	for name, tc := range map[string]struct {
		path    string
		headers []Header
		want    string // host, URI, user agent, accept and X-A
	}{
		"by default":        {"", nil, "127.0.0.1:PORT / kube-probe/weir */* []"},
		"a path and query":  {"/ready?deep=1", nil, "127.0.0.1:PORT /ready?deep=1 kube-probe/weir */* []"},
		"no URL":            {"/%zz", nil, "127.0.0.1:PORT /%25zz kube-probe/weir */* []"},
		"without a slash":   {"ready", nil, "127.0.0.1:PORT /ready kube-probe/weir */* []"},
		"a host":            {"/", []Header{{"host", "checkout.example"}}, "checkout.example / kube-probe/weir */* []"},
		"headers of theirs": {"/", []Header{{"user-agent", "me"}, {"Accept", "text/plain"}, {"X-A", "1"}, {"x-a", "2"}}, "127.0.0.1:PORT / me text/plain [1 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			target := Target{Container: "c", Kind: Liveness, HTTP: &HTTP{Port: port, Path: tc.path, Headers: tc.headers}}
			if status, body := get(t.Context(), New(app, token, []Target{target}), target.Path(token)); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			is := strings.Join([]string{got.Host, got.RequestURI, got.UserAgent(), got.Header.Get("Accept"), "[" + strings.Join(got.Header["X-A"], " ") + "]"}, " ")
			if want := strings.ReplaceAll(tc.want, "PORT", strconv.Itoa(int(port))); is != want {
				t.Errorf("the app got %q, want %q", is, want)
			}
		})
	}
}

// TestOnlyDeclaredProbesReachTheApp: nothing else opens a way to the app, and nothing that it
// says gets out.
func TestOnlyDeclaredProbesReachTheApp(t *testing.T) {
	var asked atomic.Int64
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "secret")
	})
	targets := []Target{{Container: "c", Kind: Liveness, HTTP: &HTTP{Port: port, Path: "/alive"}}}
	h := New(app, token, targets)
	for _, path := range []string{
		"/probe/T0KEN/c/readiness", "/probe/T0KEN/d/liveness", "/probe/T0KEN/c/liveness/", "/probe/T0KEN/c/liveness/../liveness",
		"/probe/T0KEN", "/probe/T0KEN/", "/probe/",
		"/probe/c/liveness", "/probe//c/liveness", "/probe/T0KEM/c/liveness", "/probe/t0ken/c/liveness", "/probe/T0KE/c/liveness", "/probe/T0KENN/c/liveness",
	} {
		if status, _ := get(t.Context(), h, path); status != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, status)
		}
	}
	if status, _ := get(t.Context(), New(app, "", targets), "/probe//c/liveness"); status != http.StatusNotFound {
		t.Errorf("without a token: status %d, want 404", status)
	}
	if n := asked.Load(); n != 0 {
		t.Fatalf("the app was asked %d times", n)
	}
	if status, body := get(t.Context(), h, "/probe/T0KEN/c/liveness?path=/other"); status != http.StatusOK || strings.Contains(body, "secret") || asked.Load() != 1 {
		t.Errorf("status %d, body %q, asked %d times", status, body, asked.Load())
	}
}

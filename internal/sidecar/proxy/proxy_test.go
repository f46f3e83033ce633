package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/internal/sidecar/proxy/http1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

type noLimits struct{}

func (noLimits) Limits() []enforce.LimitState { return nil }
func (noLimits) Pools() []pools.State         { return nil }
func (noLimits) Fleet() *fleet.State          { return nil }

// noPool needs no slots.
type noPool struct{}

func (noPool) Acquire(*http.Request) (pools.Slot, *pools.Refusal) { return pools.Slot{}, nil }

// A decider is a function that decides.
type decider func(*http.Request) (enforce.Verdict, error)

func (d decider) Decide(_ context.Context, r *http.Request) (enforce.Verdict, error) { return d(r) }

func admit(*http.Request) (enforce.Verdict, error) { return enforce.Verdict{Allowed: true}, nil }

// both are the protocols that sidecars speak.
func both() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

func only(http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetUnencryptedHTTP2(http2)
	return p
}

// serve serves h on loopback until the test ends and returns its address.
func serve(t *testing.T, h any) string {
	t.Helper()
	if p, ok := h.(*proxy.Proxy); ok {
		return serveProxy(t, p)
	}
	s := httptest.NewUnstartedServer(h.(http.Handler))
	s.Config.Protocols = both()
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// serveProxy serves a port as a sidecar does.
func serveProxy(t testing.TB, p *proxy.Proxy) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, p, l, unbounded())
	return l.Addr().String()
}

// serveOn serves a listener until the test ends.
func serveOn(t testing.TB, p *proxy.Proxy, l net.Listener, port *membudget.Port) *http1.Server {
	t.Helper()
	streams := proxy.NewHTTP2(p, p)
	s := proxy.NewServer(p, p, streams)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l, port) })
	t.Cleanup(func() {
		s.Close()
		streams.Close()
		serving.Wait()
	})
	return s
}

// inFront serves a proxy in front of app and returns its address.
func inFront(t *testing.T, app string, d decider) string {
	t.Helper()
	return serve(t, newProxy(t, app, noPool{}, d))
}

func newProxy(t *testing.T, app string, pool proxy.Pool, d proxy.Decider) *proxy.Proxy {
	t.Helper()
	return proxy.New(proxy.Config{Target: app, Pool: pool, Decider: d, Metrics: metrics.New(noLimits{}), Log: slog.New(slog.DiscardHandler)})
}

// client returns a client of one protocol.
func client(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: only(http2), DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func do(t *testing.T, c *http.Client, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequestsPassUnchanged(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan *http.Request, 1)
			app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("X-App", "yes")
				w.Header().Set("Trailer", "X-Checksum")
				w.WriteHeader(http.StatusTeapot)
				_, _ = w.Write(body)
				w.Header().Set("X-Checksum", "42")
				seen <- r
			}))
			address := inFront(t, app, admit)
			r := newRequest(t, http.MethodPut, "http://"+address+"/a%2Fb//c?q=1;2&%zz", io.NopCloser(strings.NewReader("hello")))
			r.Host = "shop.example"
			r.Header["X-Forwarded-For"] = []string{"1.1.1.1", "2.2.2.2"}
			r.Header.Set("X-Forwarded-Proto", "https")
			r.Header.Set("Forwarded", "for=1.1.1.1")
			r.Header.Set("X-Weir-Trust", "me")
			r.Trailer = http.Header{"X-Sum": {"7"}}
			res, body := do(t, client(t, http2), r)

			if res.StatusCode != http.StatusTeapot || body != "hello" || res.Header.Get("X-App") != "yes" || res.Trailer.Get("X-Checksum") != "42" {
				t.Errorf("answer: %d %q %v, trailer %v", res.StatusCode, body, res.Header, res.Trailer)
			}
			got := <-seen
			if got.RequestURI != "/a%2Fb//c?q=1;2&%zz" || got.Host != "shop.example" {
				t.Errorf("the app was asked for %s at %s", got.RequestURI, got.Host)
			}
			if (got.ProtoMajor == 2) != http2 {
				t.Errorf("the app was spoken to in %s", got.Proto)
			}
			want := map[string]string{
				"X-Forwarded-For": "1.1.1.1, 2.2.2.2, 127.0.0.1", "X-Forwarded-Proto": "https",
				"Forwarded": "for=1.1.1.1", "X-Weir-Trust": "",
			}
			for header, value := range want {
				if got.Header.Get(header) != value {
					t.Errorf("%s is %q, want %q", header, got.Header.Get(header), value)
				}
			}
			if got.Trailer.Get("X-Sum") != "7" {
				t.Errorf("the request's trailer is %v", got.Trailer)
			}
		})
	}
}

// TestStreamsFlow holds a response open: its first part has to arrive before the
// app goes on.
func TestStreamsFlow(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{})
			app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "one\n")
				w.(http.Flusher).Flush()
				<-read
				_, _ = io.WriteString(w, "two\n")
			}))
			address := inFront(t, app, admit)
			res, err := client(t, http2).Do(newRequest(t, http.MethodGet, "http://"+address+"/", nil))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			lines := bufio.NewReader(res.Body)
			if line, err := lines.ReadString('\n'); line != "one\n" {
				t.Errorf("got %q, %v", line, err)
			}
			close(read)
			if line, err := lines.ReadString('\n'); line != "two\n" {
				t.Errorf("got %q, %v", line, err)
			}
		})
	}
}

// echo is an app that switches protocols and then repeats what it hears.
func echo(protocol string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "plain")
			return
		}
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	})
}

// upgrade asks for a change of protocol on a connection of its own.
func upgrade(t *testing.T, address, protocol string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n%s\r\n", protocol)
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, reader, res
}

func TestWebSocketsPass(t *testing.T) {
	address := inFront(t, serve(t, echo("websocket")), admit)
	conn, reader, res := upgrade(t, address, "Upgrade: websocket\r\n")
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %s", res.Status)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := reader.ReadString('\n'); line != "hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

// TestNoOtherProtocolOpensATunnel: requests inside it would pass every limit.
func TestNoOtherProtocolOpensATunnel(t *testing.T) {
	for name, header := range map[string]string{
		"h2c":              "Upgrade: h2c\r\n",
		"h2c with another": "Upgrade: websocket, h2c\r\n",
		"h2c in two lines": "Upgrade: websocket\r\nUpgrade: h2c\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			address := inFront(t, serve(t, echo("h2c")), admit)
			_, _, res := upgrade(t, address, header)
			if res.StatusCode != http.StatusOK {
				t.Errorf("got %s", res.Status)
			}
		})
	}
}

// unjittered is what policies say to clients by default, but for the jitter.
func unjittered() policy.Response {
	r := policy.DefaultResponse()
	r.Jitter = 0
	return r
}

// refusal returns a decider that refuses.
func refusal(cause enforce.Cause, d twotier.Decision, rates ...limiter.Rate) decider {
	return func(*http.Request) (enforce.Verdict, error) {
		return enforce.Verdict{Refusal: &enforce.Refusal{
			Cause: cause, Decision: d, Missing: policy.KeyPart{Type: policy.HeaderKey, Header: "X-Tenant"},
			Policy: &policy.Policy{Namespace: "shop", Name: "checkout", Response: unjittered()},
			Limit:  &policy.Limit{Name: "per-tenant", Rates: rates, Cost: &policy.Cost{RequestHeader: "X-Cost"}},
			Params: limiter.Params{Rates: rates},
			Cost:   7, Most: 5,
		}}, nil
	}
}

func TestRefusals(t *testing.T) {
	second, minute := limiter.Rate{Limit: 5, Window: limiter.Second}, limiter.Rate{Limit: 100, Window: 60 * limiter.Second}
	exhausted := twotier.Decision{Limit: 100, ResetAfter: 29500 * time.Millisecond, RetryAfter: 29500 * time.Millisecond}
	for name, tc := range map[string]struct {
		decide  decider
		status  int
		headers map[string]string
		problem problem.Problem
	}{
		"the limit is reached": {
			refusal(enforce.QuotaExceeded, exhausted, second, minute), 429,
			map[string]string{"Retry-After": "30", "RateLimit": `"per-tenant";r=0;t=30`, "RateLimit-Policy": `"per-tenant";q=100;qu="weir-cost";w=60`},
			problem.Problem{
				Type: problem.QuotaExceeded, Title: "Request cannot be satisfied as assigned quota has been exceeded", Status: 429,
				Detail: `limit "per-tenant" of policy "checkout" admits 100 per 1m0s`, ViolatedPolicies: []string{"per-tenant"},
			},
		},
		"waiting does not help": {
			refusal(enforce.QuotaExceeded, twotier.Decision{Limit: 5}, limiter.Rate{Limit: 5, Window: limiter.MinWindow}), 429,
			map[string]string{"Retry-After": "", "RateLimit": `"per-tenant";r=0`, "RateLimit-Policy": `"per-tenant";q=5;qu="weir-cost"`},
			problem.Problem{
				Type: problem.QuotaExceeded, Title: "Request cannot be satisfied as assigned quota has been exceeded", Status: 429,
				Detail: `limit "per-tenant" of policy "checkout" admits 5 per 100ms`, ViolatedPolicies: []string{"per-tenant"},
			},
		},
		"the store is away": {
			refusal(enforce.StoreUnavailable, twotier.Decision{}, second), 503,
			map[string]string{"Retry-After": "1"},
			problem.Problem{
				Type: problem.TemporaryReducedCapacity, Title: "Request cannot be satisfied due to temporary server capacity constraints", Status: 503,
				Detail:           `the counters of limit "per-tenant" of policy "checkout" cannot be reached, and the policy refuses requests meanwhile`,
				ViolatedPolicies: []string{"per-tenant"},
			},
		},
		"the store is changing": {
			refusal(enforce.StoreDraining, twotier.Decision{RetryAfter: 2 * time.Second}, second), 503,
			map[string]string{"Retry-After": "2"},
			problem.Problem{
				Type: problem.TemporaryReducedCapacity, Title: "Request cannot be satisfied due to temporary server capacity constraints", Status: 503,
				Detail:           `the counters of limit "per-tenant" of policy "checkout" are moving to another store, and requests are refused until it serves`,
				ViolatedPolicies: []string{"per-tenant"},
			},
		},
		"the cost is never admitted": {
			refusal(enforce.CostTooLarge, twotier.Decision{}, second), 400,
			map[string]string{"Retry-After": "", "RateLimit": ""},
			problem.Problem{
				Title: "Bad Request", Status: 400,
				Detail: `the request costs 7, and limit "per-tenant" of policy "checkout" never admits more than 5: send a smaller X-Cost`,
			},
		},
		"the key is missing": {
			refusal(enforce.KeyMissing, twotier.Decision{}, second), 400, nil,
			problem.Problem{Title: "Bad Request", Status: 400, Detail: `limit "per-tenant" of policy "checkout" counts by header X-Tenant: send it once`},
		},
		"a defect": {
			func(*http.Request) (enforce.Verdict, error) {
				return enforce.Verdict{Allowed: true}, errors.New("defect")
			}, 500, nil,
			problem.Problem{Title: "Internal Server Error", Status: 500, Detail: "the rate limiter failed"},
		},
		"a panic": {
			func(*http.Request) (enforce.Verdict, error) { panic("defect") }, 500, nil,
			problem.Problem{Title: "Internal Server Error", Status: 500, Detail: "the rate limiter failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request reached the app") }))
			address := inFront(t, app, tc.decide)
			res, body := do(t, client(t, false), newRequest(t, http.MethodPost, "http://"+address+"/", strings.NewReader("a body")))
			if res.StatusCode != tc.status || res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("got %s, %s", res.Status, res.Header.Get("Content-Type"))
			}
			for header, want := range tc.headers {
				if got := res.Header.Get(header); got != want {
					t.Errorf("%s is %q, want %q", header, got, want)
				}
			}
			var got problem.Problem
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.problem, got); diff != "" {
				t.Errorf("problem differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAppThatIsDownIsABadGateway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	address := inFront(t, listener.Addr().String(), admit)
	res, body := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil))
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "did not answer") {
		t.Errorf("got %s: %s", res.Status, body)
	}
}

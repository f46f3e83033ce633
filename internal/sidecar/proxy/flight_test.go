package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// rounds is how many requests a guard learns from at once.
const rounds = 10

// learning is a pool that halves its limit of 100 when requests are dropped.
func learning() policy.Pool {
	p := fixed(100)
	p.Limit = policy.LimitRange{Min: 1, Initial: 100, Max: 1000}
	p.Algorithm = policy.LimitAlgorithm{
		Type: policy.AIMD, Baseline: &policy.Baseline{Type: policy.RollingBaseline, Samples: 100}, TolerancePercent: 1000, BackoffPercent: 50,
		Ignore: []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/ignored"}}}},
	}
	return p
}

// outcomeOf returns what was reported to the guard about the requests that it saw.
func outcomeOf(t *testing.T, k *pools.Enforcer) concurrency.Outcome {
	t.Helper()
	eventually(t, "a slot is held", func() bool { s := k.States()[0].Stats; return s.InFlight == 0 && s.Admitted == rounds })
	switch s := k.States()[0].Stats; {
	case s.Inferred < 100:
		return concurrency.Dropped
	case s.Latency > 0:
		return concurrency.Served
	default:
		return concurrency.Ignored
	}
}

// answer returns an app that answers every request alike.
func answer(status int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// breakOff is an app that ends the connection after it said something.
func breakOff(said string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, said)
		conn.Close()
	}
}

func TestWhatBecomesOfARequestIsTold(t *testing.T) {
	const get, begun = "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhell"
	waits := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	for name, tc := range map[string]struct {
		app     http.HandlerFunc // nil: none is there
		path    string
		request string        // get when empty
		leaves  time.Duration // after that, when not 0
		want    concurrency.Outcome
	}{
		"it is answered":                 {app: answer(200, "", "hello"), want: concurrency.Served},
		"the app fails":                  {app: answer(500, "", "oops"), want: concurrency.Served},
		"the app says that it is busy":   {app: answer(503, "", ""), want: concurrency.Dropped},
		"what is behind the app is late": {app: answer(504, "", ""), want: concurrency.Dropped},
		"its latency is to be ignored":   {app: answer(503, "", ""), path: "/ignored", want: concurrency.Ignored},
		"there is no app":                {want: concurrency.Dropped},
		"the app hangs up":               {app: breakOff(""), want: concurrency.Dropped},
		"the app hangs up in the middle of what the client sends": {app: breakOff(""), request: "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhell", want: concurrency.Dropped},
		"the app breaks off its answer":                           {app: breakOff(begun), want: concurrency.Dropped},
		"the answer is a stream of events":                        {app: answer(200, "Content-Type: text/event-stream; charset=utf-8", "data: 1\n\n"), want: concurrency.Ignored},
		"the client leaves":                                       {app: waits, leaves: 20 * time.Millisecond, want: concurrency.Ignored},
		"the client breaks off what it sends":                     {app: waits, request: "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhell", leaves: 20 * time.Millisecond, want: concurrency.Ignored},
		"what the client sends is malformed":                      {app: waits, request: "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n", want: concurrency.Ignored},
		"it becomes a tunnel": {
			app:     breakOff("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
			request: "GET %s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", want: concurrency.Ignored,
		},
		"the app sends word before its answer": {app: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusServiceUnavailable)
		}, want: concurrency.Dropped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := "127.0.0.1:1"
			if tc.app != nil {
				target = serve(t, tc.app)
			}
			address, k := pooled(t, target, learning(), decider(admit), newDivider())
			if tc.path == "" {
				tc.path = "/"
			}
			if tc.request == "" {
				tc.request = get
			}
			for range rounds {
				converse(t, address, fmt.Sprintf(tc.request, tc.path), tc.leaves)
			}
			if got := outcomeOf(t, k); got != tc.want {
				t.Errorf("the guard was sent %d, want %d", got, tc.want)
			}
		})
	}
}

// converse sends a request as it stands, and reads the answer or leaves.
func converse(t *testing.T, address, request string, leaves time.Duration) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	if leaves > 0 {
		<-time.After(leaves)
		return
	}
	answers := bufio.NewReader(conn)
	res, err := http.ReadResponse(answers, nil)
	for err == nil && res.StatusCode == http.StatusEarlyHints {
		res, err = http.ReadResponse(answers, nil)
	}
	if err != nil {
		return // the app's end is passed on
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
}

// caller is a gRPC service whose calls all end alike.
type caller struct {
	healthpb.UnimplementedHealthServer
	err error
}

func (c caller) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return new(healthpb.HealthCheckResponse), c.err
}

// Watch answers twice.
func (c caller) Watch(_ *healthpb.HealthCheckRequest, s grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	for range 2 {
		if err := s.Send(new(healthpb.HealthCheckResponse)); err != nil {
			return err
		}
	}
	return c.err
}

func TestWhatBecomesOfACallIsTold(t *testing.T) {
	check := func(ctx context.Context, c healthpb.HealthClient) {
		_, _ = c.Check(ctx, new(healthpb.HealthCheckRequest))
	}
	for name, tc := range map[string]struct {
		code  codes.Code
		call  func(context.Context, healthpb.HealthClient)
		hurry bool // the client sets a deadline
		want  concurrency.Outcome
	}{
		"it is answered":                    {call: check, want: concurrency.Served},
		"it is refused":                     {code: codes.NotFound, call: check, want: concurrency.Served},
		"the app says that it is busy":      {code: codes.Unavailable, call: check, want: concurrency.Dropped},
		"what is behind the app is late":    {code: codes.DeadlineExceeded, call: check, want: concurrency.Dropped},
		"it is late for an eager client":    {code: codes.DeadlineExceeded, call: check, hurry: true, want: concurrency.Ignored},
		"the answer is a stream":            {call: watch, want: concurrency.Ignored},
		"the answer is a stream that fails": {code: codes.Unavailable, call: watch, want: concurrency.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			app := caller{}
			if tc.code != codes.OK {
				app.err = status.Error(tc.code, "")
			}
			server := grpc.NewServer()
			healthpb.RegisterHealthServer(server, app)
			address, k := pooled(t, serve(t, server), learning(), decider(admit), newDivider())
			conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx := t.Context()
			if tc.hurry {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Minute)
				defer cancel()
			}
			for range rounds {
				tc.call(ctx, healthpb.NewHealthClient(conn))
			}
			if got := outcomeOf(t, k); got != tc.want {
				t.Errorf("the guard was sent %d, want %d", got, tc.want)
			}
		})
	}
}

func watch(ctx context.Context, c healthpb.HealthClient) {
	stream, err := c.Watch(ctx, new(healthpb.HealthCheckRequest))
	for err == nil {
		_, err = stream.Recv()
	}
}

// full is a pool that refuses everything.
type full pools.Refusal

func (f *full) Acquire(*http.Request) (pools.Slot, *pools.Refusal) {
	return pools.Slot{}, (*pools.Refusal)(f)
}

func TestRefusalsOfAPoolSayWhy(t *testing.T) {
	const rate = `"checkout";q=12;qu="concurrent-requests"`
	away := errors.New("redis at cache:6379: no such host")
	for name, tc := range map[string]struct {
		status   int
		why      pools.Refusal
		detail   string
		after    string
		rate     string
		grpcCode codes.Code
	}{
		"no slot": {
			503,
			pools.Refusal{Verdict: concurrency.Full, Limit: 12, Ceiling: 3, InFlight: 3, RetryAfter: 80 * time.Millisecond},
			`pool "checkout" is full: its limit is 12, and all that this pod may have in flight, 3, is`, "1", rate, codes.Unavailable,
		},
		"no slot but those of partitions": {
			503,
			pools.Refusal{Verdict: concurrency.Full, Limit: 12, Ceiling: 3, InFlight: 1, Kept: 2},
			"its limit is 12, and none of the 3 slots of this pod is free: 1 in flight, 2 kept for partitions", "1", rate, codes.Unavailable,
		},
		"fewer slots than pods": {
			503,
			pools.Refusal{Verdict: concurrency.Full, Limit: 12, Holders: 13},
			"its limit is 12, fewer slots than the 13 pods that share it, and this pod has none", "1", rate, codes.Unavailable,
		},
		"no part while shares change hands": {
			503,
			pools.Refusal{Verdict: concurrency.Full, Limit: 12, Holders: 12},
			"its limit is 12, and this pod has no part of it at the moment", "1", rate, codes.Unavailable,
		},
		"no slot, answered like a quota": {429, pools.Refusal{Verdict: concurrency.Full, Limit: 12, Ceiling: 3}, "is full", "1", rate, codes.ResourceExhausted},
		"no room to wait": {
			503,
			pools.Refusal{Verdict: concurrency.Overflow, Limit: 12, Ceiling: 3, RetryAfter: 2500 * time.Millisecond},
			"queue is full, too", "3", rate, codes.Unavailable,
		},
		"waited too long": {503, pools.Refusal{Verdict: concurrency.Expired, Limit: 12, Ceiling: 3}, "no request ended while this one waited", "1", rate, codes.Unavailable},
		"no share yet":    {503, pools.Refusal{Verdict: concurrency.Unassigned, RetryAfter: time.Second}, "has given this pod no part of its limit yet", "1", "", codes.Unavailable},
		"no share, for a reason": {
			503,
			pools.Refusal{Verdict: concurrency.Unassigned, CoordinatorError: away},
			"its coordinator does not answer, and this pod never had a part of its limit", "1", "", codes.Unavailable,
		},
		"fenced": {
			503,
			pools.Refusal{Verdict: concurrency.Fenced, Limit: 12, CoordinatorError: away, RetryAfter: time.Second},
			"its coordinator does not answer, and the part of its limit that this pod had has expired", "1", rate, codes.Unavailable,
		},
		"stopping": {503, pools.Refusal{Verdict: concurrency.Closed, Limit: 12}, "the pod is stopping", "1", rate, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := fixed(12)
			p.StatusCode = tc.status
			tc.why.Pool = &p
			side := newProxy(t, "127.0.0.1:1", (*full)(&tc.why), decider(admit))
			address := serve(t, side)
			res, body := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil))
			if res.StatusCode != tc.status || res.Header.Get("Retry-After") != tc.after {
				t.Errorf("got %s, to be tried again after %q", res.Status, res.Header.Get("Retry-After"))
			}
			if got := res.Header.Get("Ratelimit-Policy"); got != tc.rate {
				t.Errorf("RateLimit-Policy is %s, want %s", got, tc.rate)
			}
			var got problem.Problem
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if got.Type != problem.TemporaryReducedCapacity || !strings.Contains(got.Detail, tc.detail) || len(got.ViolatedPolicies) != 1 || got.ViolatedPolicies[0] != "checkout" {
				t.Errorf("got %+v", got)
			}
			if strings.Contains(body, "cache:6379") {
				t.Errorf("a client gets a message about a server: %s", body)
			}
			_, err := healthClient(t, address).Check(t.Context(), new(healthpb.HealthCheckRequest))
			if status.Code(err) != tc.grpcCode {
				t.Errorf("a call got %v, want %v", err, tc.grpcCode)
			}
			info, source := detail[*errdetails.ErrorInfo](err), map[string]string{"namespace": "shop", "pool": "checkout"}
			if info.GetReason() != "NO_SLOT" || !maps.Equal(info.GetMetadata(), source) {
				t.Errorf("the reason of a call is %v", info)
			}
		})
	}
}

package rls_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// TestErrorsAreThoseOfGRPC sets what gRPC's client is answered beside what gRPC's own server
// answers it.
func TestErrorsAreThoseOfGRPC(t *testing.T) {
	s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 10, hour))))
	bare := grpc.NewServer(grpc.MaxRecvMsgSize(1 << 20))
	ratelimitv3.RegisterRateLimitServiceServer(bare, echo{answer: new(ratelimitv3.RateLimitResponse)})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- bare.Serve(listener) }()
	defer func() {
		bare.Stop()
		<-done
	}()
	theirs := dial(t, listener.Addr().String())
	const method = ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName
	small, large := call("checkout", "user=ann"), call("checkout", "user="+strings.Repeat("x", 1<<20))
	fits := call("checkout", "user="+strings.Repeat("x", 1<<20-100))
	for name, tc := range map[string]struct {
		method  string
		in      *ratelimitv3.RateLimitRequest
		options []grpc.CallOption
		want    codes.Code
	}{
		"small":           {method, small, nil, codes.OK},
		"as large as may": {method, fits, nil, codes.OK},
		"too large":       {method, large, nil, codes.ResourceExhausted},
		"another service": {"/envoy.Other/ShouldRateLimit", small, nil, codes.Unimplemented},
		"another method":  {"/envoy.service.ratelimit.v3.RateLimitService/Other", small, nil, codes.Unimplemented},
		"another subtype": {method, small, []grpc.CallOption{grpc.CallContentSubtype("proto")}, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			ours := s.connection.Invoke(t.Context(), tc.method, tc.in, new(ratelimitv3.RateLimitResponse), tc.options...)
			want := theirs.Invoke(t.Context(), tc.method, tc.in, new(ratelimitv3.RateLimitResponse), tc.options...)
			if status.Code(ours) != tc.want || status.Convert(ours).Message() != status.Convert(want).Message() {
				t.Errorf("got %v, gRPC's server answers %v", ours, want)
			}
		})
	}
	// This program has gzip, so gRPC's server of it reads it; that of the sidecar has not.
	err = s.connection.Invoke(t.Context(), method, small, new(ratelimitv3.RateLimitResponse), grpc.UseCompressor(gzip.Name))
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("compressed: %v", err)
	}
}

// TestCallsTakeMemory while they are in flight, and connections while they are open.
func TestCallsTakeMemory(t *testing.T) {
	s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 10, hour))))
	s.shouldRateLimit(t, call("checkout", "user=ann"))
	if n := s.budget.Taken(membudget.Connections); n < membudget.ConnectionBytes+membudget.HTTP2Bytes {
		t.Errorf("%d bytes are taken for a connection", n)
	}
	_ = s.connection.Close()
	eventually(t, func() bool { return s.budget.Taken(membudget.Connections)+s.budget.Taken(membudget.Requests) == 0 })
}

// TestOtherProtocolsAreRefused: the port knows HTTP/2 only.
func TestOtherProtocolsAreRefused(t *testing.T) {
	s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 10, hour))))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if text, err := io.ReadAll(out.Body); err != nil || out.StatusCode != http.StatusHTTPVersionNotSupported || !strings.Contains(string(text), "HTTP/2") {
		t.Errorf("got %d %s, %v", out.StatusCode, text, err)
	}
}

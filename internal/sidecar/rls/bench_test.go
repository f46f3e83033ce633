package rls_test

import (
	"context"
	"net"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// echo answers every call with the same.
type echo struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	answer *ratelimitv3.RateLimitResponse
}

func (e echo) ShouldRateLimit(context.Context, *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return e.answer, nil
}

// BenchmarkShouldRateLimit sets calls of two descriptors beside calls of a bare gRPC
// server in the same process that decides nothing.
func BenchmarkShouldRateLimit(b *testing.B) {
	p := policyOf(limitOf("user", limiter.MaxLimit, hour), limitOf("path", limiter.MaxLimit, hour))
	p.Response = policy.Response{}
	p.Consistency = policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 1_000_000, Expiry: policy.Coupled}
	s := serve(b, enforcing(b, newStore(now), p))
	in := call("checkout", "user=ann", "path=/")
	out, err := s.ShouldRateLimit(b.Context(), in)
	if err != nil {
		b.Fatal(err)
	}
	bare := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(bare, echo{answer: out})
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- bare.Serve(listener) }()
	defer func() {
		bare.Stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}()
	for name, client := range map[string]ratelimitv3.RateLimitServiceClient{
		"sidecar": s, "bare": ratelimitv3.NewRateLimitServiceClient(dial(b, listener.Addr().String())),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.ShouldRateLimit(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package rls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
)

// A service answers calls.
type service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer

	decider Decider
	metrics *metrics.Metrics
	calls   *calls
	log     *slog.Logger
}

func newService(cfg Config) *service {
	return &service{decider: cfg.Decider, metrics: cfg.Metrics, calls: newCalls(cfg.Metrics.Registry), log: cfg.Log}
}

// ShouldRateLimit decides the descriptors of a call. When a limit makes requests wait
// for their turn, it answers when that has come. A call that could not be decided gets
// a status of INTERNAL and never OK, so that Envoy does what it is configured to.
func (s *service) ShouldRateLimit(ctx context.Context, in *ratelimitv3.RateLimitRequest) (out *ratelimitv3.RateLimitResponse, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			s.metrics.Panics.Inc()
			s.log.Error("a call panicked", "panic", reason, "stack", string(debug.Stack()))
			out, err = nil, s.failed(ctx, fmt.Errorf("panic: %v", reason))
		}
	}()
	ds, err := read(in)
	if err != nil {
		s.calls.count(invalid)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ruling, err := s.decide(ctx, in.GetDomain(), ds)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	out = answer(ruling)
	s.calls.note(in, ruling)
	return out, nil
}

// decide returns when it is the call's turn.
func (s *service) decide(ctx context.Context, domain string, ds []enforce.Descriptor) (enforce.Ruling, error) {
	start := time.Now()
	ruling, err := s.decider.DecideDescriptors(ctx, domain, ds)
	s.metrics.Decision.Observe(time.Since(start).Seconds())
	if err == nil && ruling.Admission != nil {
		err = ruling.Admission.Wait(ctx)
	}
	return ruling, err
}

// failed returns the status of a call that was not decided.
func (s *service) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		s.calls.count(abandoned)
		return status.FromContextError(ctx.Err()).Err()
	}
	s.defect(err)
	return status.Error(codes.Internal, "the rate limiter failed")
}

// defect reports a call that was not decided by nobody's choice.
func (s *service) defect(err error) {
	s.calls.count(failed)
	s.metrics.Errors.Inc()
	s.log.Error("a call was not decided", "error", err)
}

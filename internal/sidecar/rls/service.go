package rls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/proxy/frames"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A service answers calls.
type service struct {
	decider Decider
	metrics *metrics.Metrics
	calls   *calls
	log     *slog.Logger
}

func newService(cfg Config) *service {
	return &service{decider: cfg.Decider, metrics: cfg.Metrics, calls: newCalls(cfg.Metrics.Registry), log: cfg.Log}
}

// A call decides its descriptors. A call that could not be decided gets a status of INTERNAL and
// never OK, so that Envoy does what it is configured to.
type call struct {
	service     *service
	request     request
	descriptors []enforce.Descriptor
	refused     *frames.Reply // a call that cannot be decided; nil for others
	began       time.Time
	ruling      *enforce.Ruling // nil before it is decided
}

// shouldRateLimit reads a call.
func (s *service) shouldRateLimit(message []byte) frames.Call {
	c := &call{service: s, began: time.Now()}
	if err := c.request.decode(message); err != nil {
		s.defect(err)
		c.refused = &frames.Reply{Code: codes.Internal, Text: fmt.Sprintf("the message is not one of RateLimitRequest: %v", err)}
		return c
	}
	var err error
	if c.descriptors, err = c.request.check(); err != nil {
		s.calls.count(invalid)
		c.refused = &frames.Reply{Code: codes.InvalidArgument, Text: err.Error()}
	}
	return c
}

// Now implements frames.Call.
func (c *call) Now() (out frames.Reply, ok bool) {
	if c.refused != nil {
		return *c.refused, true
	}
	defer func() {
		if reason := recover(); reason != nil {
			out, ok = c.panicked(context.Background(), reason), true
		}
	}()
	ruling, err := c.service.decider.DecideHeld(c.request.domain, c.descriptors)
	switch {
	case errors.Is(err, twotier.ErrNotHeld):
		return frames.Reply{}, false
	case err != nil:
		c.observe()
		return c.failed(context.Background(), err), true
	}
	c.observe()
	c.ruling = &ruling
	if ruling.Admission.Delay() > 0 {
		return frames.Reply{}, false
	}
	return c.answer(), true
}

// Wait implements frames.Call. When a limit makes requests wait for their turn, it answers when
// that has come.
func (c *call) Wait(ctx context.Context) (out frames.Reply) {
	defer func() {
		if reason := recover(); reason != nil {
			out = c.panicked(ctx, reason)
		}
	}()
	if c.ruling == nil {
		ruling, err := c.service.decider.DecideDescriptors(ctx, c.request.domain, c.descriptors)
		c.observe()
		if err != nil {
			return c.failed(ctx, err)
		}
		c.ruling = &ruling
	}
	if c.ruling.Admission != nil {
		if err := c.ruling.Admission.Wait(ctx); err != nil {
			return c.failed(ctx, err)
		}
	}
	return c.answer()
}

// observe notes how long the decision took.
func (c *call) observe() { c.service.metrics.Decision.Observe(time.Since(c.began).Seconds()) }

// answer answers a call that was decided.
func (c *call) answer() frames.Reply {
	c.service.calls.note(&c.request, *c.ruling)
	return frames.Reply{Message: appendAnswer(make([]byte, frames.MessageRoom, 128), *c.ruling)}
}

func (c *call) panicked(ctx context.Context, reason any) frames.Reply {
	c.service.metrics.Panics.Inc()
	c.service.log.Error("a call panicked", "panic", reason, "stack", string(debug.Stack()))
	return c.failed(ctx, fmt.Errorf("panic: %v", reason))
}

// failed answers a call that was not decided.
func (c *call) failed(ctx context.Context, err error) frames.Reply {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		c.service.calls.count(abandoned)
		if errors.Is(err, context.DeadlineExceeded) {
			return frames.Reply{Code: codes.DeadlineExceeded, Text: err.Error()}
		}
		return frames.Reply{Code: codes.Canceled, Text: err.Error()}
	}
	c.service.defect(err)
	return frames.Reply{Code: codes.Internal, Text: "the rate limiter failed"}
}

// defect reports a call that was not decided by nobody's choice.
func (s *service) defect(err error) {
	s.calls.count(failed)
	s.metrics.Errors.Inc()
	s.log.Error("a call was not decided", "error", err)
}

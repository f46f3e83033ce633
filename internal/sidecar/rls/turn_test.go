package rls_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func now() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }

// even lets one through in that long, and lets others wait longer than anybody does.
func even(interval limiter.Micros) policy.Limit {
	l := limitOf("path", 1, interval)
	l.Algorithm, l.MaxDelay = policy.LeakyBucket, limiter.MaxWindow
	return l
}

func TestCallsWaitForTheirTurn(t *testing.T) {
	s := serve(t, enforcing(t, newStore(now), policyOf(even(limiter.Second/10))))
	start := time.Now()
	for range 3 {
		s.shouldRateLimit(t, call("checkout", "path=/"))
	}
	if took := time.Since(start); took < 190*time.Millisecond {
		t.Errorf("the third came after %v", took)
	}
}

// TestACallThatDoesNotWaitKeepsNothing: what other limits granted is given back.
func TestACallThatDoesNotWaitKeepsNothing(t *testing.T) {
	s := serve(t, enforcing(t, newStore(now), policyOf(limitOf("user", 10, hour), even(hour))))
	s.shouldRateLimit(t, call("checkout", "user=ann", "path=/"))
	for range 3 {
		ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := s.ShouldRateLimit(ctx, call("checkout", "user=ann", "path=/")); status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("got %v", err)
		}
		leave()
	}
	look := call("checkout", "user=ann")
	look.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
	eventually(t, func() bool {
		return s.shouldRateLimit(t, look).GetStatuses()[0].GetLimitRemaining() == 9 && s.result(t, "abandoned") == 3
	})
}

// eventually waits for what the server does after the client has left.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for patience := time.After(10 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-patience:
			t.Fatal("it does not come")
		}
	}
}

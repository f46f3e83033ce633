package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// TestWaitsSpreadAsTheLeaderSays: of eight that spread over a minute, one is certainly later than a second.
func TestWaitsSpreadAsTheLeaderSays(t *testing.T) {
	var addresses []string
	for i := range maxWaits {
		addresses = append(addresses, fmt.Sprintf("10.0.0.%d:1", i+1))
	}
	for said, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, time.Millisecond: time.Millisecond, 0: defaultSpread} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			began, first := time.Now(), map[string]time.Duration{}
			c := &Client{waits: map[string]*wait{}, dial: dialer{
				options: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
				dial: func(_ context.Context, address string) (net.Conn, error) {
					mu.Lock()
					defer mu.Unlock()
					if _, again := first[address]; !again {
						first[address] = time.Since(began)
					}
					return nil, errors.New("refused")
				},
			}}
			c.await(ctx, &fleetpb.Replicas{Addresses: addresses, SpreadMillis: said.Milliseconds()})
			time.Sleep(2 * want)
			cancel()
			c.waiters.Wait()
			latest := slices.Max(slices.Collect(maps.Values(first)))
			if len(first) != maxWaits || latest > want || want > defaultSpread && latest <= defaultSpread {
				t.Errorf("over %s, %d of %d begin within %s", said, len(first), maxWaits, latest)
			}
		})
	}
}

func TestPausesGrow(t *testing.T) {
	refused := errors.New("refused")
	for _, tc := range []struct {
		err     error
		longest time.Duration
		before  backoff
		most    time.Duration // the pause is at least half of that
		after   backoff
	}{
		{refused, longestPause, backoff{}, firstPause, backoff{1, 0}},
		{refused, longestPause, backoff{2, 0}, 4 * firstPause, backoff{3, 0}},
		{refused, longestPause, backoff{3, 0}, longestPause, backoff{4, 0}},
		{refused, longestPause, backoff{100, 100}, longestPause, backoff{101, 0}},
		{refused, longestBeside, backoff{3, 0}, 8 * firstPause, backoff{4, 0}},
		{crowded{refused}, longestPause, backoff{}, firstPause, backoff{1, 1}},
		{crowded{refused}, longestPause, backoff{100, 0}, firstPause, backoff{101, 1}}, // it listens again
		{crowded{refused}, longestPause, backoff{7, 5}, 32 * firstPause, backoff{8, 6}},
		{crowded{refused}, longestPause, backoff{100, 100}, longestCrowded, backoff{101, 101}},
		{fmt.Errorf("a stream: %w", crowded{refused}), longestBeside, backoff{100, 100}, longestCrowded, backoff{101, 101}},
	} {
		for range 100 {
			b := tc.before
			if got := b.next(tc.longest, tc.err); got < tc.most/2 || got > tc.most || b != tc.after {
				t.Fatalf("after %+v, last %v: %s, want %s to %s; then %+v, want %+v", tc.before, tc.err, got, tc.most/2, tc.most, b, tc.after)
			}
			if b.reset(); b != (backoff{}) {
				t.Fatalf("after a reset: %+v", b)
			}
		}
	}
}

func TestWhyAStreamIsNotServed(t *testing.T) {
	for code, want := range map[codes.Code]bool{
		codes.ResourceExhausted: true, codes.DeadlineExceeded: true, codes.Canceled: true,
		codes.Unavailable: false, codes.Unauthenticated: false, codes.PermissionDenied: false, codes.Aborted: false,
	} {
		err := unserved(status.Error(code, "why"))
		if got := errors.Is(err, errCrowded); got != want {
			t.Errorf("%s: crowded %t, want %t", code, got, want)
		}
		if s := status.Convert(err); s.Code() != code || s.Message() != "why" {
			t.Errorf("%s: the status is %v", code, s)
		}
	}
}

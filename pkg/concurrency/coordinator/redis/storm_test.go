package redis

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/pooltest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// TestNoLossGrantsTooMuch lets a fleet use a pool while servers lose what they know.
func TestNoLossGrantsTooMuch(t *testing.T) {
	for name, start := range redistest.Deployments(100 * time.Millisecond) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			s := dial.Open(t, redis.Options{Addresses: d.Addresses, Sentinel: d.Sentinel, Cluster: d.Cluster})
			pooltest.Storm(t, New(s), d.Losses)
		})
	}
}

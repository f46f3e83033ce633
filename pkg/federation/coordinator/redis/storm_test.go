package redis

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// TestNoLossGrantsTooMuch lets a fleet lease while servers lose what they know.
func TestNoLossGrantsTooMuch(t *testing.T) {
	for name, start := range redistest.Deployments(100 * time.Millisecond) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			s := dial.Open(t, redis.Options{Addresses: d.Addresses, Sentinel: d.Sentinel, Cluster: d.Cluster})
			budgettest.Storm(t, budgettest.Subject{Coordinator: New(s)}, d.Losses)
		})
	}
}

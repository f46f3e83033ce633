package redis_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

func TestSentinelsNameThePrimary(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	sentinels := redistest.StartSentinels(t, 1, "limits", primary)
	s := open(t, redis.Options{Addresses: sentinels, Sentinel: "limits", DB: 2})
	everything(t, s)
	if g := probe(t, s).Volatile.Guarantee; g.Grade != store.HardExceptSplitBrain || !strings.Contains(g.Reason, "Sentinels may") {
		t.Errorf("without a replica: %+v", g)
	}

	unknown := open(t, redis.Options{Addresses: sentinels, Sentinel: "others"})
	_, err := unknown.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
	wantUnavailable(t, err, "others", "no Sentinel knows")
}

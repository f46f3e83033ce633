package redis

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/escrowtest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// TestNoLossHandsOnTooMuch lets the processes of a region use a budget while servers
// lose what they know.
func TestNoLossHandsOnTooMuch(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		escrowtest.Storm(t, New(dial.Server(t, server)), []func(){
			server.Restart, server.Flush, server.FlushScripts,
			func() { server.Flush(); server.FlushScripts() },
			func() { server.Do("SAVE"); <-time.After(30 * time.Millisecond); server.Restart() },
			func() { server.Pause(); <-time.After(300 * time.Millisecond); server.Resume() },
			server.Flush, server.Flush,
		})
	})
	t.Run("a failover by Sentinels", func(t *testing.T) {
		t.Parallel()
		primary := redistest.Start(t)
		replica := primary.StartReplica()
		sentinels := redistest.StartSentinels(t, 3, "escrows", primary)
		e := New(dial.Open(t, redis.Options{Addresses: sentinels, Sentinel: "escrows"}))
		escrowtest.Storm(t, e, []func(){func() { primary.FailOver(replica, 50*time.Millisecond) }})
	})
}

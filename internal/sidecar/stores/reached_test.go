package stores_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// TestReachedClocksArePassedOn passes on to a pool what the clocks of servers had reached: of one that
// is in use, of one that is opened later, and of one that is opened again with other
// credentials.
func TestReachedClocksArePassedOn(t *testing.T) {
	p := newPool(t)
	ahead := store.Reached{Now: limiter.Instant(time.Now().Add(time.Hour).UnixMicro())}
	doubted := redisAt(redistest.Start(t).Addr)
	used, later, other := redisAt(redistest.Start(t).Addr), redisAt(redistest.Start(t).Addr), redisAt(redistest.Start(t).Addr)
	used.Secret = "shop/db"
	p.Learn([]stores.Secret{{Name: "shop/db", Version: "1"}})
	key := store.Key{Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "p", Limit: "l"}}
	params := limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.MinWindow}}}
	wants := func(of policy.Store, reason limiter.Reason) {
		t.Helper()
		s := open(t, p, of)
		for range 10 {
			res, err := s.Apply(t.Context(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
			if err != nil {
				t.Fatal(err)
			}
			if res.Reason == reason {
				return
			}
			<-time.After(30 * time.Millisecond) // its memory begins with a window
		}
		t.Errorf("%s never answers with reason %d", of.Address, reason)
	}
	wants(used, limiter.Granted)
	p.Reached(used.Server(), ahead)
	p.Reached(later.Server(), ahead)
	wants(used, limiter.ClockBehind)
	wants(later, limiter.ClockBehind)
	wants(other, limiter.Granted)
	p.Reached(doubted.Server(), store.Reached{Now: 1, Doubtful: ahead.Now})
	s := open(t, p, doubted)
	for range 10 { // longer than its memory takes to begin
		if res, err := s.Apply(t.Context(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 1}); err != nil || res.Reason != limiter.Amnesia {
			t.Errorf("of a window that may have been served before %d is granted, with reason %d: %v", res.Granted, res.Reason, err)
		}
		<-time.After(30 * time.Millisecond)
	}
	p.Learn([]stores.Secret{{Name: "shop/db", Version: "2"}})
	wants(used, limiter.ClockBehind)
}

package coordinator

import (
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A holder is sent what is known of the clocks of its own stores before it is sent to ask
// them, as soon as something is known, and once.
func TestAHolderHearsWhatClocksHadShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := onRedis(day, false), onRedis(day, false)
		there.Namespace, there.Store.Address = "other", "theirs:6379"
		late := onRedis(day, false)
		late.Name, late.Store.Address = "late", "late:6379"
		var known atomic.Int64
		l := lead(t, &memoryTerms{}, publishing(here, late, there), func(c *Config) {
			c.Reached = func(of policy.Store) store.Reached {
				if of.Address == late.Store.Address {
					return store.Reached{Now: limiter.Instant(known.Load()), Doubtful: 7}
				}
				return store.Reached{Now: 5e12}
			}
		})
		s := l.connect(pod("shop", "web-0"), "1")
		wants := func(clocks map[string]int64) {
			t.Helper()
			got := map[string]int64{}
			for _, c := range s.recv().GetClocks().GetClocks() {
				got[c.GetServer()] = c.GetNowMicros()
			}
			if !maps.Equal(got, clocks) {
				t.Errorf("sent %v, want %v", got, clocks)
			}
		}
		wants(map[string]int64{"Redis|redis:6379|": 5e12})
		s.config()
		s.report(&fleetpb.LimitReport{})
		known.Store(6e12)
		s.report(&fleetpb.LimitReport{})
		for {
			if m := s.recv(); m.GetClocks() != nil {
				if c := m.GetClocks().GetClocks(); len(c) != 1 || c[0].GetServer() != late.Store.Server() || c[0].GetNowMicros() != 6e12 || c[0].GetDoubtfulMicros() != 7 {
					t.Errorf("sent %v", c)
				}
				break
			}
		}
		l.end()
		s.close()
	})
}

package coordinator

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records/recordstest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	birthday = limiter.Instant(500_000 * 3600 * limiter.Second)
	day      = 24 * 3600 * limiter.Second
)

func onRedis(length limiter.Micros, durable bool) policy.Policy {
	p := limited("shop", 1, 10, length)
	p.Store = policy.Store{Type: policy.RedisStore, Address: "redis:6379"}
	p.Limits[0].Retention.Durable = durable
	return p
}

// keepingBirths has leaders write births down in one place.
func keepingBirths() func(*Config) {
	kept := records.NewBirths(recordstest.Holding())
	return func(c *Config) {
		c.Births = kept
		c.Limits = func(context.Context) (map[store.Scope]struct{}, error) { return nil, nil }
	}
}

// On the controller's own store a limit that is new serves the window that is open,
// although the leader's memory is younger; one that was there before does not. One that is
// deleted and created again finds its count.
func TestANewLimitServesTheOpenWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms, births := first(), keepingBirths()
		old := limited("shop", 1, 10, day)
		all := publishing(old)
		l := lead(t, terms, all, births)
		s := l.connect(pod("shop", "web-0"), "1")
		s.config()
		if reply := s.lease(old, old.Limits[0], want(4)); reply.GetGranted() != 4 {
			t.Errorf("reply = %v, want 4 units", reply)
		}
		terms.left.Term++ // the leader is gone without a hand-over
		l.end()
		s.close()
		time.Sleep(time.Second)

		fresh := limited("shop", 1, 10, day)
		fresh.Name = "fresh"
		all.set(true, old, fresh)
		l = lead(t, terms, all, births)
		s = l.connect(pod("shop", "web-0"), "2")
		s.config()
		if reply := s.lease(old, old.Limits[0]); reply.GetReason() != int32(limiter.Amnesia) {
			t.Errorf("reply = %v, want nothing of a limit that may have granted", reply)
		}
		if reply := s.lease(fresh, fresh.Limits[0], want(7)); reply.GetGranted() != 7 {
			t.Errorf("reply = %v, want 7 units of a new limit", reply)
		}
		all.set(true, old)
		l.Refresh("shop")
		synctest.Wait()
		s.config()
		all.set(true, old, fresh)
		l.Refresh("shop")
		synctest.Wait()
		s.config()
		if reply := s.lease(fresh, fresh.Limits[0], want(7)); reply.GetGranted() != 3 {
			t.Errorf("reply = %v, want the 3 units that are left", reply)
		}
		l.end()
		s.close()

		l = lead(t, terms, all, births) // which goes on with the memory
		s = l.connect(pod("shop", "web-0"), "3")
		s.config()
		if reply := s.lease(fresh, fresh.Limits[0]); reply.GetReason() != int32(limiter.Exhausted) {
			t.Errorf("reply = %v, want nothing left", reply)
		}
		l.end()
		s.close()
	})
}

// TestANewLimitWaitsForNobody: a sidecar that has not come back cannot hold a share of a limit
// that is new, so that grants the whole in every window. One that was there before does not.
func TestANewLimitWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms, births := first(), keepingBirths()
		old := limited("shop", 1, 10, 5*limiter.Second)
		all := publishing(old)
		l := lead(t, terms, all, births)
		s := l.connect(pod("shop", "web-0"), "1")
		s.config()
		terms.left.Term++ // the leader is gone without a hand-over
		l.end()
		s.close()
		time.Sleep(time.Second)

		fresh := old
		fresh.Name = "fresh"
		all.set(true, old, fresh)
		l = lead(t, terms, all, births, podsOf(pod("shop", "web-0"), pod("shop", "web-1")).watched)
		s = l.connect(pod("shop", "web-0"), "2")
		s.config()
		requireGranted(t, "in the open window", s, fresh, 10)
		time.Sleep(5 * time.Second)
		requireGranted(t, "in the next window", s, fresh, 10)
		requireGranted(t, "of what web-1 may have a share of", s, old, 0)
		l.end()
		s.close()
	})
}

// TestANewLimitIsPendingAtItsSidecars: while its store cannot be asked they are sent the
// limit, do not enforce it, and keep what is in force.
func TestANewLimitIsPendingAtItsSidecars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Bool
		facts := func(c *Config) {
			c.Facts = func(context.Context, policy.Store) (store.Facts, error) {
				if !answers.Load() {
					return store.Facts{}, errors.New("no route")
				}
				return store.Facts{Now: birthday, Volatile: store.Keeping{Memories: []limiter.MemoryID{1}}}, nil
			}
		}
		fresh := onRedis(day, false)
		all := publishing(fresh)
		l := lead(t, first(), all, keepingBirths(), facts)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		if got := s.config(); len(got.Policies) != 1 || !got.Policies[0].Limits[0].Pending {
			t.Fatalf("configuration = %+v, want the limit pending", got)
		}
		if got := l.observed(); got.Generation != 0 {
			t.Errorf("session = %+v, want none that enforces the policy", got)
		}
		answers.Store(true)
		if got := s.config(); got.Policies[0].Limits[0].Pending || !slices.Equal(got.Policies[0].Limits[0].Retention.Born, []limiter.MemoryID{1}) {
			t.Errorf("configuration = %+v, want the limit in force", got)
		}
		if got := l.observed(); got.Generation != 1 {
			t.Errorf("session = %+v, want one that enforces the policy", got)
		}

		answers.Store(false)
		moved := nextGeneration(fresh)
		moved.Store.Address = "other:6379"
		all.set(true, moved)
		l.Refresh("shop")
		l.requireSent(pod("shop", "web-0"), fresh)
		more := nextGeneration(fresh)
		more.Limits = append(slices.Clone(more.Limits), more.Limits[0])
		more.Limits[1].Name = "more"
		all.set(true, more)
		l.Refresh("shop")
		if got := s.config(); got.Policies[0].Limits[0].Pending || !got.Policies[0].Limits[1].Pending {
			t.Errorf("configuration = %+v, want only the second limit pending", got)
		}
	})
}

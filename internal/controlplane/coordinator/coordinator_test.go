package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// TestACounterOfTheLeaderIsSetBack, and its holders are granted the limit once more.
func TestACounterOfTheLeaderIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := keyed(limited("shop", 1, 10, span), 100)
		l := lead(t, &memoryTerms{}, publishing(p))
		s := l.connect(pod("shop", "web-0"), "1")
		s.config()
		time.Sleep(5 * time.Second)
		take := func(value string, granted int64) {
			t.Helper()
			if r := s.lease(p, p.Limits[0], by(value, p.Limits[0].Rates[0]), want(10)); r.GetGranted() != granted {
				t.Errorf("%s is granted %d, want %d: %v", value, r.GetGranted(), granted, r)
			}
		}
		scope := store.Scope{Cluster: "test", Namespace: p.Namespace, Policy: p.Name, Limit: p.Limits[0].Name}
		if by, _ := l.present.Load().sessions.of("web-0-uid").served(); by != nil {
			scope.Cluster = by.snapshot.Cluster
		}
		reset := func(hash *string) {
			t.Helper()
			at, err := l.Reset(t.Context(), scope, hash)
			if now, _ := l.Now(); err != nil || at != now {
				t.Errorf("set back at %d, %v; want %d", at, err, now)
			}
		}
		take("alice", 10)
		take("bob", 10)
		reset(new(store.HashValue("alice")))
		take("alice", 10)
		take("bob", 0)
		reset(nil)
		take("alice", 10)
		take("bob", 10)

		s.close()
		l.end()
		if _, err := l.Reset(t.Context(), scope, nil); err == nil {
			t.Error("one that does not lead set a counter back")
		}
	})
}

// TestTheAuditHearsOfAReset, or it would take what was admitted after it for an overshoot.
func TestTheAuditHearsOfAReset(t *testing.T) {
	p := &policy.Policy{ResetAt: 7, Limits: []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}}}}}
	if got := promised(p, &p.Limits[0]).Reset; got != 7 {
		t.Errorf("the audit takes the reset for one at %d, want 7", got)
	}
}

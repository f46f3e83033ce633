package absence

import (
	"testing"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// TestALimitThatIsNewIsServedAtOnce, also while sidecars are absent.
func TestALimitThatIsNewIsServedAtOnce(t *testing.T) {
	r := New(func() limiter.Instant { return 5 }, false, nil)
	r.Await([]podauth.Identity{pod("shop", "web-0")})
	known, created := store.Scope{Namespace: "shop", Policy: "checkout", Limit: "all"}, store.Scope{Namespace: "shop", Policy: "checkout", Limit: "other"}
	r.Create(created)
	if got := r.Absences(created); len(got) != 0 {
		t.Errorf("absences of a new limit: %v", got)
	}
	if got := r.Absences(known); len(got) != 1 || got[0].Until != limiter.MaxInstant {
		t.Errorf("absences of another: %v", got)
	}
}

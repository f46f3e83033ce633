package coordinator

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/coordinator/podauth"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestSharesInUseAreNotGivenToOthers: three holders have promised. A fourth has a quarter, and
// its stream is up or broken; it is subtracted once, and never one that was not counted.
func TestSharesInUseAreNotGivenToOthers(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "checkout"}
	quarter := map[string]int64{"uid": 4}
	three := limiter.Shares{Of: 4, At: make([]limiter.Instant, 3)}
	four := limiter.Shares{Of: 4, At: make([]limiter.Instant, 4)}
	for what, tc := range map[string]struct {
		staged          bool
		back            limiter.Shares
		brought, breaks bool
		away            map[string]int64
		want            int64
	}{
		"nobody else":                              {want: 3},
		"one has not promised":                     {away: quarter, want: 4},
		"its former stream broke":                  {away: quarter, breaks: true, want: 4},
		"others are awaited, and it was back once": {staged: true, back: four, brought: true, away: quarter, want: 4},
		"others are awaited, and it never was":     {staged: true, back: three, away: quarter, want: 4},
	} {
		t.Run(what, func(t *testing.T) {
			r := newReturns(func() limiter.Instant { return 1 }, !tc.staged, nil)
			if tc.staged {
				r.policies[name] = &comeback{Absence: limiter.Absence{Until: limiter.MaxInstant, Back: []limiter.Shares{tc.back}}}
			}
			if tc.brought {
				r.brought["uid"] = nil
			}
			if tc.breaks {
				r.lose(podauth.Identity{Namespace: "shop", PodUID: "uid"}, map[types.NamespacedName]int64{name: 4})
			}
			if got := r.divisor(name, 3, tc.away); got != tc.want {
				t.Errorf("three are sent %d holders, want %d", got, tc.want)
			}
		})
	}
}

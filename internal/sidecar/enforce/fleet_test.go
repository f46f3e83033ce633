package enforce_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestAFleetUnderOverloadAdmitsTheLimit runs sidecars on one store, each with more
// requests than the fleet may admit. In no window do they admit more than the limit,
// in all of them together hardly less, and that is what they report. A machine that
// is busy with other things may keep a sidecar from spending what it leased.
func TestAFleetUnderOverloadAdmitsTheLimit(t *testing.T) {
	const (
		sidecars = 8
		limit    = 300
		length   = 250 * limiter.Millisecond
		windows  = 5
	)
	for _, mode := range []policy.ConsistencyMode{policy.Leased, policy.CachedDeny, policy.Strict} {
		t.Run(string(mode), func(t *testing.T) {
			begun := time.Now()
			s := newStore(func() limiter.Micros { return limiter.Micros(time.Since(begun).Microseconds()) })
			p := policyOf(limitOf("all", limit))
			p.Limits[0].Rates[0].Window = length
			if mode != policy.Leased {
				p.Consistency = policy.Consistency{Mode: mode}
			}
			fleet := make([]*enforce.Enforcer, sidecars)
			for i := range fleet {
				fleet[i] = newEnforcer(t, s)
				apply(t, fleet[i], p)
			}
			ctx, stop := context.WithTimeout(t.Context(), windows*time.Duration(length)*time.Microsecond)
			defer stop()
			var wait sync.WaitGroup
			for _, e := range fleet {
				wait.Go(func() {
					for ctx.Err() == nil {
						if _, err := e.Decide(context.Background(), get("/")); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wait.Wait()

			admitted := map[int64]int64{} // by window
			for _, e := range fleet {
				for _, r := range e.Report(time.Now(), 1) {
					for _, w := range r.GetWindows() {
						admitted[w.GetWindows()[0].GetIndex()] += w.GetAdmitted()
					}
				}
			}
			first := int64(400_000*hour) / int64(length)
			if len(admitted) < windows {
				t.Errorf("%d windows were counted, want %d", len(admitted), windows)
			}
			var whole int64 // admitted in windows that were open all the time
			for index, n := range admitted {
				if n > limit {
					t.Errorf("window %d: %d admitted, limit %d", index-first, n, limit)
				}
				if index < first+windows-1 {
					whole += n
				}
			}
			if whole < (windows-1)*limit*9/10 {
				t.Errorf("only %d of %d admitted under overload", whole, (windows-1)*limit)
			}
		})
	}
}

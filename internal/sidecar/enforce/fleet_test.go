package enforce_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestAFleetUnderOverloadAdmitsTheLimit runs sidecars on one store, each with more
// requests than the fleet may admit. In no window do they admit more than the limit,
// in all of them together hardly less, and that is what they report.
func TestAFleetUnderOverloadAdmitsTheLimit(t *testing.T) {
	for _, mode := range []policy.ConsistencyMode{policy.Leased, policy.CachedDeny, policy.Strict} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { overload(t, mode) })
		})
	}
}

func overload(t *testing.T, mode policy.ConsistencyMode) {
	const (
		sidecars = 8
		limit    = 300
		length   = 250 * limiter.Millisecond
		windows  = 5
		pause    = 500 * time.Microsecond // between two requests to a sidecar, on average
	)
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
	var wait sync.WaitGroup
	for i, e := range fleet {
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		wait.Go(func() {
			for time.Since(begun) < windows*time.Duration(length)*time.Microsecond {
				if _, err := e.Decide(context.Background(), get("/")); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(rng.Int64N(int64(2 * pause))))
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
	if whole < (windows-1)*limit*99/100 {
		t.Errorf("only %d of %d admitted under overload", whole, (windows-1)*limit)
	}
}

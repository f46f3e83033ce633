package memory_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// TestAResetEndsWhatWasForgotten sets counters back that a store which is new keeps from
// granting, by the counter and by the limit.
func TestAResetEndsWhatWasForgotten(t *testing.T) {
	now := limiter.Instant(1_790_000_000_000_000)
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 10, Window: limiter.MaxWindow}}}
	one := limiter.Command{Min: 1, Want: 1}
	for name, hash := range map[string]*string{"a counter": new(string), "a limit": nil} {
		s := memory.New(memory.Options{Clock: func() limiter.Instant { return now }})
		key := store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}}
		other := key
		other.Scope.Limit = "m"
		apply := func(k store.Key, want limiter.Reason) {
			t.Helper()
			if res, err := s.Apply(t.Context(), k, p, one); err != nil || res.Reason != want {
				t.Errorf("%s, %s: %v, %v, want %v", name, k, res.Reason, err, want)
			}
		}
		apply(key, limiter.Amnesia)
		apply(other, limiter.Amnesia)
		if n, err := s.Reset(t.Context(), key.Scope, hash); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		apply(key, limiter.Granted)
		apply(other, limiter.Amnesia)
		s.Seal()
		if _, err := s.Reset(t.Context(), key.Scope, hash); err == nil {
			t.Errorf("%s: a sealed store is set back", name)
		}
	}
}

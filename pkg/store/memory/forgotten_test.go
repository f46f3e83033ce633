package memory_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

func counterIn(policy string, i int) store.Key {
	return store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: policy, Limit: "l"}, Hash: store.HashValue(fmt.Sprint(i))}
}

// crowd returns a store of three policies with that many keys each, which have taken
// one unit of ten a minute.
func crowd(t *testing.T, clock *fakeClock, large, middle, small int) *memory.Store {
	t.Helper()
	s := memory.New(memory.Options{Clock: clock.Now, First: true})
	for policy, keys := range map[string]int{"large": large, "middle": middle, "small": small} {
		for i := range keys {
			apply(t, s, counterIn(policy, i), perWindow(10, 60*limiter.Second), lease(1))
		}
	}
	return s
}

// over hands a store over in as many bytes, and returns what was left out.
func over(t *testing.T, s *memory.Store, clock *fakeClock, maxBytes int) (*memory.Store, []memory.Forgotten) {
	t.Helper()
	data, left, err := s.Export(maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > maxBytes {
		t.Fatalf("%d bytes of at most %d", len(data), maxBytes)
	}
	ledger, err := memory.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return memory.New(memory.Options{Clock: clock.Now, Ledger: ledger}), left
}

// TestTheLargestPoliciesAreLeftOutFirst: those that fit go on as if nothing had
// happened, and the others grant nothing until their windows are over.
func TestTheLargestPoliciesAreLeftOutFirst(t *testing.T) {
	minute := perWindow(10, 60*limiter.Second)
	for _, c := range []struct {
		name string
		most int
		left []string
	}{
		{"all fit", unbounded, nil},
		{"two fit", 40_000, []string{"large"}},
		{"one fits", 5_000, []string{"large", "middle"}},
		{"none fits", 400, []string{"large", "middle", "small"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := newFakeClock(epoch + 1)
			keys := map[string]int{"large": 3000, "middle": 1000, "small": 100}
			s := crowd(t, clock, keys["large"], keys["middle"], keys["small"])
			clock.Advance(limiter.Second)
			sealed := clock.Now()
			s, left := over(t, s, clock, c.most)
			var want []memory.Forgotten
			for _, policy := range c.left {
				want = append(want, memory.Forgotten{Cluster: "c", Namespace: "n", Policy: policy, Since: sealed, Keys: keys[policy]})
			}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, s.Forgotten()); diff != "" {
				t.Errorf("what the successor knows to be forgotten (-want +got):\n%s", diff)
			}
			lost := map[string]bool{}
			for _, policy := range c.left {
				lost[policy] = true
			}
			for policy := range keys {
				known, unseen := apply(t, s, counterIn(policy, 0), minute, lease(10)), apply(t, s, counterIn(policy, -1), minute, lease(10))
				switch {
				case lost[policy] && (known.Reason != limiter.Amnesia || unseen.Reason != limiter.Amnesia):
					t.Errorf("%s was left out and grants %d and %d", policy, known.Granted, unseen.Granted)
				case !lost[policy] && (known.Granted != 9 || unseen.Granted != 10):
					t.Errorf("%s was handed over and grants %d and %d, want 9 and 10", policy, known.Granted, unseen.Granted)
				}
			}
			clock.Advance(60 * limiter.Second)
			for policy := range keys {
				if res := apply(t, s, counterIn(policy, 0), minute, lease(10)); res.Granted != 10 {
					t.Errorf("%s grants %d of the next window, want 10", policy, res.Granted)
				}
			}
		})
	}
}

// TestForgottenCountersStayForgotten hands over again, with room for everything.
func TestForgottenCountersStayForgotten(t *testing.T) {
	clock := newFakeClock(epoch + 1)
	hour := perWindow(10, 3600*limiter.Second)
	s := memory.New(memory.Options{Clock: clock.Now, First: true})
	for i := range 3000 {
		apply(t, s, counterIn("large", i), hour, lease(1))
	}
	s, left := over(t, s, clock, 200)
	for range 3 {
		clock.Advance(limiter.Second)
		if s, _ = over(t, s, clock, unbounded); len(s.Forgotten()) != 1 || len(left) != 1 || s.Forgotten()[0] != left[0] {
			t.Fatalf("%v is forgotten, want %v", s.Forgotten(), left)
		}
		if res := apply(t, s, counterIn("large", 0), hour, lease(1)); res.Reason != limiter.Amnesia {
			t.Fatalf("a later successor grants %d", res.Granted)
		}
	}
	clock.Advance(limiter.MaxWindow)
	if s, _ = over(t, s, clock, unbounded); len(s.Forgotten()) != 0 {
		t.Errorf("%v is forgotten when no window can be open", s.Forgotten())
	}
}

// TestNoHandOverGrantsTwice goes through random hand-overs that have room for
// everything, for some or for nothing: no window is granted more than its limit.
func TestNoHandOverGrantsTwice(t *testing.T) {
	const limit = 10
	for seed := range seeds.Of(uint64(100)) {
		rng := rand.New(rand.NewPCG(seed, 64))
		clock := newFakeClock(epoch + 1)
		s := memory.New(memory.Options{Clock: clock.Now, First: true})
		granted := map[string]int64{}
		for range 10 {
			for range 60 {
				policy := []string{"a", "b", "c"}[rng.IntN(3)]
				window := limiter.Micros(1+len(policy)+int(policy[0]-'a')*10) * limiter.Second
				key := counterIn(policy, rng.IntN(20))
				res := apply(t, s, key, perWindow(limit, window), lease(1+rng.Int64N(limit)))
				if res.Granted > 0 {
					granted[fmt.Sprint(key, res.Windows.Slice()[0].Index)] += res.Granted
				}
				clock.Advance(limiter.Micros(rng.Int64N(int64(limiter.Second))))
			}
			s, _ = over(t, s, clock, []int{unbounded, 900, 600, 300}[rng.IntN(4)])
		}
		for window, sum := range granted {
			if sum > limit {
				t.Fatalf("seed %d: window %s was granted %d of %d", seed, window, sum, limit)
			}
		}
	}
}

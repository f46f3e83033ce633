package account

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

const never = limiter.Instant(math.MinInt64)

func TestLedgerDecides(t *testing.T) {
	second := func(s float64) limiter.Instant { return limiter.Instant(s * float64(limiter.Second)) }
	rates := []limiter.Rate{{Limit: 100, Window: limiter.Second}, {Limit: 300, Window: 10 * limiter.Second}}
	used := func(perSecond, perTen int64) windowCounts {
		return windowCounts{n: 2, open: [8]limiter.OpenWindow{
			{Rate: rates[0], Index: 21, Granted: perSecond}, {Rate: rates[1], Index: 2, Granted: perTen},
		}}
	}
	for name, tc := range map[string]struct {
		ledger  windowCounts
		divisor int64
		from    float64
		to      float64
		seen    limiter.Instant
		cost    int64
		want    bool
	}{
		"a first request":                                    {windowCounts{}, 10, 21.5, 21.6, never, 1, true},
		"the whole share at once":                            {windowCounts{}, 10, 21.5, 21.6, never, 10, true},
		"more than the share":                                {windowCounts{}, 10, 21.5, 21.6, never, 11, false},
		"a share of nothing":                                 {windowCounts{}, 101, 21.5, 21.6, never, 1, false},
		"the rest of the share":                              {used(9, 9), 10, 21.5, 21.6, never, 1, true},
		"more than the rest of the share":                    {used(9, 9), 10, 21.5, 21.6, never, 2, false},
		"the share of the longer window is spent":            {used(0, 30), 10, 21.5, 21.6, never, 1, false},
		"the next short window, in the same long one":        {used(10, 10), 10, 22.1, 22.2, never, 10, true},
		"the clock may be in the next window":                {windowCounts{}, 10, 20.9, 21.1, never, 1, false},
		"the store was heard of in this window":              {windowCounts{}, 10, 21.5, 21.6, second(21.1), 1, false},
		"the store was heard of in this long window":         {windowCounts{}, 10, 21.5, 21.6, second(20.1), 1, false},
		"the store was heard of, but the window began here":  {used(1, 1), 10, 21.5, 21.6, second(21.4), 1, true},
		"the store was heard of in the window before":        {windowCounts{}, 10, 21.5, 21.6, second(19.9), 1, true},
		"the store was heard of in a window later than this": {windowCounts{}, 10, 21.5, 21.6, second(99), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			next, res := tc.ledger.admit(localLimit{Params: limiter.Params{Rates: rates}, divisor: tc.divisor}, Interval{second(tc.from), second(tc.to)}, tc.seen, tc.cost)
			if res.Allowed != tc.want {
				t.Errorf("allowed %v, want %v", res.Allowed, tc.want)
			}
			if !res.Allowed && (res.Wait <= 0 || next != tc.ledger) {
				t.Errorf("refused with wait %d and ledger %+v, want a wait and no change", res.Wait, next)
			}
		})
	}
}

func TestLedgerDistinguishesWindowsOfOneLength(t *testing.T) {
	day := limiter.Rate{Limit: 10, Window: limiter.Day}
	shifted := limiter.Rate{Limit: 10, Window: limiter.Day, Offset: 6 * 3600 * limiter.Second}
	p := localLimit{Params: limiter.Params{Rates: []limiter.Rate{day, shifted}}, divisor: 1}
	at := func(hours int64) Interval {
		now := limiter.Instant(hours) * 3600 * limiter.Instant(limiter.Second)
		return Interval{now, now}
	}
	var c windowCounts
	admit := func(hours, cost int64, want bool) {
		t.Helper()
		next, res := c.admit(p, at(hours), NeverSeen, cost)
		if c = next; res.Allowed != want {
			t.Errorf("hour %d: cost %d allowed %v, want %v", hours, cost, res.Allowed, want)
		}
	}
	admit(30, 6, true)
	admit(43, 6, false) // the shifted day is new, the other is not
	admit(43, 4, true)
	admit(49, 7, false) // and now the other way round
	admit(49, 6, true)
}

// TestOwnShareBound lets one holder admit all it can while it learns of the
// store's clock, loses the store and finds it again, and counts by the store's
// clock what it admitted in each window.
func TestOwnShareBound(t *testing.T) {
	rates := []limiter.Rate{{Limit: 107, Window: 200 * limiter.Millisecond}, {Limit: 350, Window: limiter.Second}}
	const holders = 5
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			ahead, ppm := rng.Int64N(int64(time.Hour)), rng.Int64N(401)-200
			store := func(now int64) limiter.Instant {
				return limiter.Instant((now + ahead + now/1_000_000*ppm) / int64(time.Microsecond))
			}
			type window struct{ length, index int64 }
			local, served, total := map[window]int64{}, map[window]bool{}, int64(0)
			var s LocalShare
			var clock ClockOffset
			var seen limiter.Instant
			now := int64(time.Minute)
			for range 20_000 {
				now += rng.Int64N(int64(3 * time.Millisecond))
				if rng.IntN(50) == 0 && now > int64(62*time.Second) && now%int64(7*time.Second) < int64(3*time.Second) {
					// The store answers, and would have served the key unless the
					// window is covered.
					sent := now
					said := store(now)
					now += rng.Int64N(int64(10 * time.Millisecond))
					clock, seen = clock.Observe(sent, now, said), max(seen, said)
					if !s.Covers(clock, now) {
						for _, r := range rates {
							served[window{int64(r.Window), r.WindowAt(said).Index}] = true
						}
					}
					continue
				}
				cost := 1 + rng.Int64N(3)
				next, res := s.Admit(limiter.Params{Rates: rates}, holders, StoreTime{Clock: clock, Seen: seen, Swapped: Past}, now, cost)
				s = next
				if !res.Allowed {
					continue
				}
				total += cost
				for _, r := range rates {
					w := window{int64(r.Window), r.WindowAt(store(now)).Index}
					local[w] += cost
					if local[w] > r.Limit/holders {
						t.Fatalf("admitted %d in a window of %dms, share %d", local[w], r.Window/limiter.Millisecond, r.Limit/holders)
					}
					if served[w] {
						t.Fatalf("admitted locally in a window of %dms that the store served", r.Window/limiter.Millisecond)
					}
				}
			}
			if total == 0 {
				t.Error("nothing was admitted locally: the test tests nothing")
			}
		})
	}
}

// TestBlindShareEndsUnderSteadyLoad sees to it that a key whose requests never
// pause finds its way from a blind window to the store.
func TestBlindShareEndsUnderSteadyLoad(t *testing.T) {
	rates := []limiter.Rate{{Limit: 1_000_000, Window: limiter.Second}}
	now := int64(time.Hour)
	var s LocalShare
	s, _ = s.Admit(limiter.Params{Rates: rates}, 1, StoreTime{Seen: never, Swapped: Past}, now, 1)
	now += int64(100 * time.Millisecond)
	clock := ClockOffset{}.Observe(now-int64(4*time.Millisecond), now, limiter.Instant(now/1000))
	for range 1000 {
		now += int64(time.Millisecond)
		if !s.Covers(clock, now) {
			return
		}
		s, _ = s.Admit(limiter.Params{Rates: rates}, 1, StoreTime{Clock: clock, Seen: clock.Interval(now).From, Swapped: Past}, now, 1)
	}
	t.Error("the key is still on its local share after a whole window")
}

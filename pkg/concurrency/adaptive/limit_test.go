package adaptive_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/limiter"
)

// ages is a configuration whose baseline ages by samples.
func ages(a adaptive.Algorithm, initial int64) adaptive.Config {
	return adaptive.Config{
		Algorithm: a, Min: 2, Max: 200, Initial: initial,
		Baseline:  adaptive.Baseline{Type: adaptive.Rolling, Samples: 1000},
		Smoothing: 0.2, Tolerance: 2, Backoff: 0.9,
	}
}

var (
	full = adaptive.Use{InFlight: 10, Ceiling: 10}
	half = adaptive.Use{InFlight: 5, Ceiling: 10}
	idle = adaptive.Use{InFlight: 4, Ceiling: 10}
)

const ms = limiter.Millisecond

// A feed is what a limit is shown: one round of samples with a latency.
type feed struct {
	rtt     limiter.Micros
	use     adaptive.Use
	dropped bool
}

// most is how many samples a round takes at most.
const most = 64

// show gives samples a latency apart until they make up a round.
func show(l *adaptive.Limit, now limiter.Instant, f feed) limiter.Instant {
	learned := l.Learned()
	for range most {
		now = now.Add(max(f.rtt, 1))
		if l.Sample(now, f.rtt, f.use, f.dropped); l.Learned() != learned {
			break
		}
	}
	return now
}

// settled returns a limit in a fleet in which every holder has ten, with a baseline of
// 50 ms and the slow start behind it.
func settled(a adaptive.Algorithm, limit int64) (*adaptive.Limit, limiter.Instant) {
	l := adaptive.New(ages(a, limit))
	l.Follow(limit, limit/10)
	return l, show(l, 0, feed{50 * ms, idle, false})
}

// TestABackendThatServesNothingLowersTheLimit begins in front of one that is not up yet:
// there is not latency to compare with.
func TestABackendThatServesNothingLowersTheLimit(t *testing.T) {
	for name, algorithm := range map[string]adaptive.Algorithm{"Gradient2": adaptive.Gradient2, "AIMD": adaptive.AIMD} {
		t.Run(name, func(t *testing.T) {
			l := adaptive.New(ages(algorithm, 100))
			now, before := limiter.Instant(0), l.Limit()
			for range 5 {
				now = show(l, now, feed{ms, adaptive.Use{InFlight: 200, Ceiling: 200}, true})
				if got := l.Limit(); got >= before || got < 2 {
					t.Fatalf("the limit went from %d to %d", before, got)
				}
				before = l.Limit()
			}
			for range 50 {
				now = show(l, now, feed{ms, adaptive.Use{InFlight: 200, Ceiling: 200}, false})
			}
			if got := l.Limit(); got <= before {
				t.Errorf("the limit stays at %d when the backend serves", got)
			}
		})
	}
}

// TestRoundsMoveTheLimit works out single steps of the laws.
func TestRoundsMoveTheLimit(t *testing.T) {
	quick := feed{50 * ms, full, false}
	for name, tc := range map[string]struct {
		algorithm adaptive.Algorithm
		initial   int64
		feed      feed
		want      int64
	}{
		"Gradient2 grows by a fifth of a root":                       {adaptive.Gradient2, 100, quick, 102},                       // 100 + 0.2·10
		"Gradient2 takes latency within tolerance for no load":       {adaptive.Gradient2, 100, feed{100 * ms, full, false}, 102}, // gradient 1
		"Gradient2 shrinks with latency over tolerance":              {adaptive.Gradient2, 100, feed{200 * ms, full, false}, 92},  // gradient ½: 100 + 0.2·(50 + 10 − 100)
		"Gradient2 in proportion":                                    {adaptive.Gradient2, 100, feed{125 * ms, full, false}, 98},  // gradient 0.8
		"Gradient2 by half at most":                                  {adaptive.Gradient2, 100, feed{9000 * ms, full, false}, 92}, // gradient ½
		"Gradient2 takes a drop for the worst latency":               {adaptive.Gradient2, 100, feed{51 * ms, full, true}, 92},
		"Gradient2 learns from half of the ceiling":                  {adaptive.Gradient2, 100, feed{50 * ms, half, false}, 102},
		"Gradient2 learns nothing from less":                         {adaptive.Gradient2, 100, feed{50 * ms, idle, false}, 100},
		"Gradient2 learns nothing bad from less either":              {adaptive.Gradient2, 100, feed{500 * ms, idle, false}, 100},
		"Gradient2 learns from a drop whatever is in flight":         {adaptive.Gradient2, 100, feed{50 * ms, idle, true}, 92},
		"Gradient2 judges by the ceiling and not by the limit":       {adaptive.Gradient2, 100, feed{50 * ms, adaptive.Use{InFlight: 5, Ceiling: 10}, false}, 102},
		"Gradient2 judges by an even part where the ceiling is less": {adaptive.Gradient2, 100, feed{50 * ms, adaptive.Use{InFlight: 2, Ceiling: 2}, false}, 100},
		"Gradient2 judges by the ceiling where it is more":           {adaptive.Gradient2, 100, feed{50 * ms, adaptive.Use{InFlight: 10, Ceiling: 30}, false}, 100},
		"Gradient2 stops at the least":                               {adaptive.Gradient2, 2, feed{900 * ms, full, true}, 2},
		"Gradient2 stops at the most":                                {adaptive.Gradient2, 200, quick, 200},
		"AIMD grows by one":                                          {adaptive.AIMD, 100, quick, 101},
		"AIMD takes latency within tolerance for no load":            {adaptive.AIMD, 100, feed{100 * ms, full, false}, 101},
		"AIMD backs off over tolerance":                              {adaptive.AIMD, 101, feed{101 * ms, full, false}, 90}, // ⌊0.9·101⌋
		"AIMD backs off at a drop":                                   {adaptive.AIMD, 100, feed{50 * ms, idle, true}, 90},
		"AIMD learns nothing from less than half":                    {adaptive.AIMD, 100, feed{500 * ms, idle, false}, 100},
		"AIMD stops at the least":                                    {adaptive.AIMD, 2, feed{900 * ms, full, true}, 2},
		"AIMD stops at the most":                                     {adaptive.AIMD, 200, quick, 200},
		"Fixed stays at the most":                                    {adaptive.Fixed, 100, feed{900 * ms, full, true}, 200},
		"a latency of nothing is the least there is":                 {adaptive.Gradient2, 100, feed{0, full, false}, 102},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := settled(tc.algorithm, tc.initial)
			show(l, now, tc.feed)
			if got := l.Limit(); got != tc.want {
				t.Errorf("limit is %d, want %d", got, tc.want)
			}
		})
	}
}

// TestARoundIsOneStep shows how much it takes to be learned from: ten samples and two
// latencies, and for more than there is, sixteen that fill the limit.
func TestARoundIsOneStep(t *testing.T) {
	for name, tc := range map[string]struct {
		samples int
		apart   limiter.Micros
		rtt     limiter.Micros
		want    uint64
	}{
		"nine samples are too few":             {9, 50 * ms, 200 * ms, 0},
		"ten samples are enough for less":      {10, 50 * ms, 200 * ms, 1},
		"fifteen are too few for more":         {15, 50 * ms, 50 * ms, 0},
		"sixteen are enough for more":          {16, 50 * ms, 50 * ms, 1},
		"a thousand at once are one latency's": {1000, 0, 50 * ms, 0},
		"a thousand in two latencies are one":  {1001, 100, 50 * ms, 1},
		"twenty apart are two rounds":          {20, 50 * ms, 200 * ms, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := settled(adaptive.Gradient2, 100)
			for range tc.samples {
				now = now.Add(tc.apart)
				l.Sample(now, tc.rtt, full, false)
			}
			if got := l.Learned(); got != tc.want {
				t.Errorf("learned %d times, want %d", got, tc.want)
			}
		})
	}
}

// TestFewThatFillDoNotCount has a limit filled by some requests only.
func TestFewThatFillDoNotCount(t *testing.T) {
	for every, want := range map[int]uint64{1: 6, 4: 1, 5: 0} {
		t.Run(fmt.Sprintf("one in %d", every), func(t *testing.T) {
			l, now := settled(adaptive.Gradient2, 100)
			for i := range 100 {
				now = now.Add(50 * ms)
				use := idle
				if i%every == 0 {
					use = full
				}
				l.Sample(now, 50*ms, use, false)
			}
			if got := l.Learned(); got != want {
				t.Errorf("learned %d times, want %d", got, want)
			}
		})
	}
}

// TestALimitThatRoseIsTriedFirst starts to count what fills it again.
func TestALimitThatRoseIsTriedFirst(t *testing.T) {
	for fleet, want := range map[int64]uint64{100: 1, 99: 1, 101: 0} {
		t.Run(fmt.Sprintf("the fleet goes to %d", fleet), func(t *testing.T) {
			l, now := settled(adaptive.Gradient2, 100)
			for i := range 16 {
				if i == 8 {
					l.Follow(fleet, 10)
				}
				now = now.Add(50 * ms)
				l.Sample(now, 50*ms, full, false)
			}
			if got := l.Learned(); got != want {
				t.Errorf("learned %d times, want %d", got, want)
			}
		})
	}
}

// TestSlowStart grows fast until there is a sign of load, or no need.
func TestSlowStart(t *testing.T) {
	for name, tc := range map[string]struct {
		then feed
		want int64 // after a round of that and a quick one
	}{
		"goes on while the limit is filled": {feed{50 * ms, full, false}, 50}, // 10, 15, 22, 33, 50
		"ends with latency over tolerance":  {feed{125 * ms, full, false}, 23},
		"ends with a drop":                  {feed{50 * ms, full, true}, 22},
		"ends when the limit is not filled": {feed{50 * ms, idle, false}, 23},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := adaptive.New(ages(adaptive.Gradient2, 10)), limiter.Instant(0)
			for range 2 {
				now = show(l, now, feed{50 * ms, adaptive.Use{InFlight: 40, Ceiling: 40}, false})
			}
			use := tc.then
			use.use.InFlight, use.use.Ceiling = 5*use.use.InFlight, 5*use.use.Ceiling
			now = show(l, now, use)
			show(l, now, feed{50 * ms, adaptive.Use{InFlight: 40, Ceiling: 40}, false})
			if got := l.Limit(); got != tc.want {
				t.Errorf("limit is %d, want %d", got, tc.want)
			}
		})
	}
}

// TestHarmIsEndedAtOnce falls all the way at the second round in a row that is as bad as
// one can be.
func TestHarmIsEndedAtOnce(t *testing.T) {
	worst, bad := feed{900 * ms, full, false}, feed{125 * ms, full, false}
	for name, tc := range map[string]struct {
		feeds []feed
		want  int64
	}{
		"one round":                    {[]feed{worst}, 92},             // 100 + 0.2·(50 + 10 − 100)
		"two in a row":                 {[]feed{worst, worst}, 60},      // 50 + 10
		"two with a better in between": {[]feed{worst, bad, worst}, 85}, // 92, then 0.2 of the way to 90, then to 60
	} {
		t.Run(name, func(t *testing.T) {
			l, now := settled(adaptive.Gradient2, 100)
			for _, f := range tc.feeds {
				now = show(l, now, f)
			}
			if got := l.Limit(); got != tc.want {
				t.Errorf("limit is %d, want %d", got, tc.want)
			}
		})
	}
}

// TestDropsDoNotCountAsLatency keeps a backend that fails at once from looking fast.
func TestDropsDoNotCountAsLatency(t *testing.T) {
	l, now := settled(adaptive.Gradient2, 100)
	show(l, now, feed{1 * ms, full, true})
	if b, r := l.Baseline(), l.Latency(); b != 50*ms || r != 50*ms {
		t.Errorf("baseline is %d and latency %d", b, r)
	}
}

// TestLatencyIsKnownWithoutALaw serves what a status shows.
func TestLatencyIsKnownWithoutALaw(t *testing.T) {
	l := adaptive.New(adaptive.Config{Algorithm: adaptive.Fixed, Max: 7})
	show(l, 0, feed{50 * ms, full, false})
	if l.Limit() != 7 || l.Ceiling(9) != 7 || l.Latency() != 50*ms || l.Baseline() != 0 || l.Learned() != 0 {
		t.Errorf("limit %d, ceiling %d, latency %d, baseline %d, learned %d", l.Limit(), l.Ceiling(9), l.Latency(), l.Baseline(), l.Learned())
	}
}

// TestOneStepFromTheFleet shows a holder any samples between two beats: the estimate
// stays within the bounds, and within one step of the limit that the fleet works by.
func TestOneStepFromTheFleet(t *testing.T) {
	for _, algorithm := range []adaptive.Algorithm{adaptive.Gradient2, adaptive.AIMD} {
		for seed := range uint64(50) {
			t.Run(fmt.Sprintf("algorithm %d, seed %d", algorithm, seed), func(t *testing.T) {
				rand := rand.New(rand.NewPCG(seed, uint64(algorithm)))
				l := adaptive.New(ages(algorithm, 50))
				var now limiter.Instant
				for range 20 {
					fleet := 2 + rand.Int64N(199)
					l.Adopt(fleet, 1+rand.Int64N(9))
					for range rand.IntN(400) {
						now = now.Add(limiter.Micros(rand.IntN(int(20 * ms))))
						ceiling := 1 + rand.Int64N(20)
						use := adaptive.Use{InFlight: 1 + rand.Int64N(ceiling), Ceiling: ceiling}
						l.Sample(now, limiter.Micros(rand.IntN(int(400*ms))), use, rand.IntN(5) == 0)
						least := max(2, int64(math.Floor(0.5*float64(fleet))))
						most := min(200, max(fleet+int64(math.Sqrt(float64(fleet))), fleet*3/2))
						if got := l.Limit(); got < least || got > most {
							t.Fatalf("limit is %d, outside %d to %d, when the fleet's is %d", got, least, most, fleet)
						}
					}
				}
			})
		}
	}
}

// TestNobodyRunsAwayFromTheFleet has a holder see nothing but spare capacity while the
// fleet's limit stands still.
func TestNobodyRunsAwayFromTheFleet(t *testing.T) {
	for name, algorithm := range map[string]adaptive.Algorithm{"Gradient2": adaptive.Gradient2, "AIMD": adaptive.AIMD} {
		t.Run(name, func(t *testing.T) {
			l, now := settled(algorithm, 100)
			for range 50 {
				now = show(l, now, feed{50 * ms, full, false})
			}
			if got := l.Limit(); got < 109 || got > 110 {
				t.Errorf("limit is %d, want a root more than 100", got)
			}
		})
	}
}

// TestFollowAndAdopt distinguishes a holder with an opinion from one without.
func TestFollowAndAdopt(t *testing.T) {
	l := adaptive.New(ages(adaptive.Gradient2, 50))
	l.Follow(100, 3)
	if got := l.Limit(); got != 50 {
		t.Errorf("limit is %d after following, want 50", got)
	}
	l.Adopt(100, 3)
	if got := l.Limit(); got != 100 {
		t.Errorf("limit is %d after adopting, want 100", got)
	}
	l.Adopt(1, 3)
	if got := l.Limit(); got != 2 {
		t.Errorf("limit is %d after adopting less than the least, want 2", got)
	}
	l.Adopt(100, 10)
	l.Alone()
	var now limiter.Instant
	for range 10 {
		now = show(l, now, feed{50 * ms, full, false})
	}
	if got := l.Limit(); got < 120 {
		t.Errorf("limit is %d, ten rounds after nobody was followed", got)
	}
}

// TestReconfigureKeepsWhatWasLearned covers bounds and kinds.
func TestReconfigureKeepsWhatWasLearned(t *testing.T) {
	base := ages(adaptive.Gradient2, 100)
	narrow := base
	narrow.Min, narrow.Max, narrow.Initial = 10, 60, 20
	for name, tc := range map[string]struct {
		to   adaptive.Config
		want int64
	}{
		"the same":        {base, 100},
		"another initial": {ages(adaptive.Gradient2, 5), 100},
		"a smaller most":  {narrow, 60},
		"another law":     {ages(adaptive.AIMD, 5), 100},
		"no law":          {adaptive.Config{Algorithm: adaptive.Fixed, Max: 33}, 33},
	} {
		t.Run(name, func(t *testing.T) {
			l := adaptive.New(base)
			show(l, 0, feed{50 * ms, idle, false})
			l.Reconfigure(tc.to)
			if got := l.Limit(); got != tc.want {
				t.Errorf("limit is %d, want %d", got, tc.want)
			}
		})
	}
	l := adaptive.New(adaptive.Config{Algorithm: adaptive.Fixed, Max: 33})
	l.Reconfigure(base)
	if got := l.Limit(); got != 33 {
		t.Errorf("limit is %d after it was fixed at 33", got)
	}
}

// TestSamplesDoNotAllocate covers a round and a measurement.
func TestSamplesDoNotAllocate(t *testing.T) {
	for name, c := range map[string]adaptive.Config{"rolling": ages(adaptive.Gradient2, 100), "measured": gradient} {
		t.Run(name, func(t *testing.T) {
			l := adaptive.New(c)
			var now limiter.Instant
			if n := testing.AllocsPerRun(1000, func() {
				now = now.Add(ms)
				l.Ceiling(now)
				l.Sample(now, ms, full, false)
			}); n != 0 {
				t.Errorf("a sample allocates %v times", n)
			}
		})
	}
}

// BenchmarkSample is what one request costs.
func BenchmarkSample(b *testing.B) {
	for name, c := range map[string]adaptive.Config{"rolling": ages(adaptive.Gradient2, 100), "measured": gradient} {
		b.Run(name, func(b *testing.B) {
			l := adaptive.New(c)
			var now limiter.Instant
			b.ReportAllocs()
			for i := range b.N {
				now = now.Add(100)
				l.Ceiling(now)
				l.Sample(now, ms+limiter.Micros(i*7919%1000), full, false)
			}
		})
	}
}

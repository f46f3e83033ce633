package account

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestOffsetContainsTheTruth exchanges messages with clocks that run up to
// 200 ppm apart and checks the estimate against the clock it estimates.
func TestOffsetContainsTheTruth(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			ahead := rng.Int64N(int64(time.Hour)) - int64(time.Minute)
			ppm := rng.Int64N(401) - 200
			store := func(now int64) int64 { return now + ahead + now/1_000_000*ppm }
			var o ClockOffset
			now := int64(time.Hour)
			for range 500 {
				now += rng.Int64N(int64(5 * time.Second))
				sent := now
				now += rng.Int64N(int64(100 * time.Millisecond))
				said := limiter.Instant(store(now) / int64(time.Microsecond))
				now += rng.Int64N(int64(100 * time.Millisecond))
				o = o.Observe(sent, now, said)

				later := now + rng.Int64N(int64(time.Minute))
				at, truth := o.Interval(later), limiter.Instant(store(later)/int64(time.Microsecond))
				if truth < at.From || truth > at.To {
					t.Fatalf("the store reads %d, outside the estimate %d to %d", truth, at.From, at.To)
				}
			}
		})
	}
}

func TestOffsetFollowsAnotherMachine(t *testing.T) {
	var o ClockOffset
	o = o.Observe(0, int64(time.Millisecond), 1000)
	o = o.Observe(int64(time.Second), int64(time.Second)+int64(80*time.Millisecond), 900_000_000)
	if at := o.Interval(int64(time.Second)); at.From < 899_000_000 || at.To > 901_000_000 {
		t.Errorf("the estimate is %+v, want what the machine that serves now said", at)
	}
}

func TestOffsetKeepsTheNarrowerEstimate(t *testing.T) {
	var o ClockOffset
	o = o.Observe(0, int64(time.Millisecond), 500)
	o = o.Observe(int64(time.Millisecond), int64(100*time.Millisecond), 50_000)
	if at := o.Interval(int64(100 * time.Millisecond)); at.To-at.From > 2*limiter.Instant(limiter.Millisecond) {
		t.Errorf("a slow reply widened the estimate to %+v", at)
	}
}

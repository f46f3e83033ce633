package slots_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestLinesOfKeysAgreeWithAList(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		k := newKeyed(t, slots.Queue{MaxLength: rng.IntN(12), MaxWait: limiter.Micros(20 + rng.IntN(40))})
		now, ceiling := limiter.Instant(0), int64(2)
		for range 400 {
			now += limiter.Instant(rng.IntN(3))
			switch rng.IntN(12) {
			case 0:
				ceiling = rng.Int64N(5)
			case 1:
				if len(k.line) > 0 { // its client went away
					i := rng.IntN(len(k.line))
					k.table.Release(k.line[i])
					k.drop(i)
				}
			case 2, 3, 4, 5:
				if len(k.held) > 0 {
					k.end(rng.IntN(len(k.held)))
				}
			default:
				k.ask(now, fmt.Sprint(rng.IntN(4)), ceiling)
			}
			if rng.IntN(3) > 0 { // not each time, so that a ceiling falls and rises between
				k.expire(now)
				k.pass(ceiling)
			}
			if k.table.Waiting() != len(k.line) || k.table.InFlight() != int64(len(k.held)) || k.keys.InFlight() != most(k.count) {
				t.Fatalf("seed %d: %d wait and %d are in flight, want %d and %d", seed, k.table.Waiting(), k.table.InFlight(), len(k.line), len(k.held))
			}
		}
		k.pass(1000)
		if len(k.line) > 0 {
			t.Fatalf("seed %d: %d wait below a ceiling of 1000", seed, len(k.line))
		}
	}
}

// One value that floods the queue leaves room in it, which is of those that come later.
func TestAFloodOfAKeyLeavesRoomInTheQueue(t *testing.T) {
	k := newKeyed(t, slots.Queue{MaxLength: 8, MaxWait: limiter.Second})
	for _, key := range []string{"flood", "more", "quiet"} {
		for range 100 {
			k.ask(0, key, 1)
		}
	}
	if flood, more, quiet := k.waiting("flood"), k.waiting("more"), k.waiting("quiet"); flood != 4 || more != 2 || quiet != 1 {
		t.Errorf("%d, %d and %d wait of 8, want each to have half of what was left", flood, more, quiet)
	}
}

func TestPromotingWhatDoesNotWaitPanics(t *testing.T) {
	table := slots.New(slots.Config{})
	held := table.Hold()
	defer func() {
		if recover() == nil || table.InFlight() != 1 {
			t.Error("no panic: one request would count twice")
		}
	}()
	table.Promote(held)
}

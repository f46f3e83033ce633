package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Two values of the key.
const thisUser, otherUser = "192.0.2.1", "192.0.2.2"

// takeOf takes units of a value of the key.
func (k *caller) takeOf(value string, n int64) *fleetpb.LeaseReply {
	k.t.Helper()
	return k.sendOf(value, &fleetpb.LeaseRequest{Op: int32(limiter.Take), Min: 1, Want: n})
}

// drawingByKey returns drawing with a key of the budget.
func drawingByKey(generation int64, lengths ...limiter.Micros) policy.Policy {
	p := keyed(drawing(generation, lengths...), 100)
	p.Limits[0].Clusters = 2
	return p
}

// overridden gives a value the limits that it has anyway.
func overridden(p policy.Policy, value string) policy.Policy {
	p.Limits = slices.Clone(p.Limits)
	p.Limits[0].Overrides = []policy.Override{{Values: []policy.Value{{value}}, Rates: p.Limits[0].Rates}}
	return p
}

// TestNoWindowOfAValueCountsTwice: the store has granted a value of the window in which the limit begins to
// draw from the budget for another one. The budget's clock is behind the store's, or ahead.
func TestNoWindowOfAValueCountsTwice(t *testing.T) {
	for i, ahead := range []time.Duration{-2500 * time.Millisecond, -300 * time.Millisecond, -300 * time.Millisecond, 0, 300 * time.Millisecond} {
		t.Run(fmt.Sprintf("%v ahead, %d", ahead, i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newShared(1000)
				b.ahead = ahead
				stored, drawn := keyed(limited("shop", 1, 10, limiter.Second), 100), drawingByKey(2, limiter.Second)
				if i == 1 {
					stored, drawn = overridden(stored, thisUser), overridden(drawn, thisUser)
				}
				k := newCaller(t, &memoryTerms{}, b, stored)
				defer k.end()
				next()
				next()
				time.Sleep(400 * time.Millisecond)
				served := k.takeOf(thisUser, 10)
				before := served.GetWindows()[0].GetIndex()
				k.edit(drawn)
				if other := k.takeOf(otherUser, 1); ahead == 0 && other.GetGranted() != 1 {
					t.Errorf("a value that the store does not know: %v", other)
				}
				drew := 0
				for range 50 {
					time.Sleep(150 * time.Millisecond)
					reply := k.takeOf(thisUser, 10)
					if reply.GetGranted() == 0 {
						continue
					}
					if drew++; reply.GetWindows()[0].GetIndex() <= before {
						t.Errorf("window %d of a value was granted by the store and by the budget: %v", before, reply)
					}
				}
				if drew < 5 {
					t.Errorf("the budget granted %d times", drew)
				}
			})
		})
	}
}

// TestUnitsOfAValueOfTheStoreDoNotGoToABudget, from which the limit draws for another value already.
func TestUnitsOfAValueOfTheStoreDoNotGoToABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared(1000)
		b.ahead = -300 * time.Millisecond
		k := newCaller(t, &memoryTerms{}, b, keyed(limited("shop", 1, 10, limiter.Second), 100))
		defer k.end()
		next()
		time.Sleep(200 * time.Millisecond) // the budget's clock shows the second before
		stored := k.takeOf(thisUser, 5)
		k.edit(drawingByKey(2, limiter.Second))
		k.takeOf(otherUser, 1)
		next()
		// back gives units back, and returns how many of them went to the budget.
		back := func(n int64, of *fleetpb.LeaseReply) int64 {
			before := b.returned
			k.sendOf(thisUser, &fleetpb.LeaseRequest{Op: int32(limiter.Return), Want: n, Windows: of.GetWindows(), AtMicros: of.GetNowMicros()})
			return b.returned - before
		}
		first := back(5, stored)
		k.takeOf(thisUser, 1)
		if again := back(5, stored); stored.GetGranted() != 5 || first+again != 0 {
			t.Errorf("of %d units of the store %d and then %d went to the budget", stored.GetGranted(), first, again)
		}
		time.Sleep(3 * time.Second) // all that the store granted is gone
		next()
		if n := back(2, k.takeOf(thisUser, 5)); n != 2 {
			t.Errorf("%d units of the budget went back to it, want 2", n)
		}
	})
}

package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// drawing returns a policy whose limit draws from one budget, which has windows of those lengths.
func drawing(generation int64, lengths ...limiter.Micros) policy.Policy {
	p := federated(limited("shop", generation, 10, lengths[0]), "acme/checkout")
	for _, length := range lengths[1:] {
		p = withRate(p, 1000, length)
	}
	return p
}

// TestNoWindowCountsTwiceWhenABudgetIsCreatedAgain with windows of other lengths right after the store
// served windows as long as those, while the budget's clock is behind the store's.
func TestNoWindowCountsTwiceWhenABudgetIsCreatedAgain(t *testing.T) {
	const second = limiter.Second
	for name, lengths := range map[string][2][]limiter.Micros{
		"of as many rates":  {{10 * second}, {second}},
		"of more rates":     {{10 * second}, {second, 10 * second}},
		"of fewer rates":    {{5 * second, 10 * second}, {second}},
		"of the same rates": {{second}, {second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newShared(10)
				b.ahead = -2500 * time.Millisecond
				k := newCaller(t, &memoryTerms{}, b, limited("shop", 1, 10, second))
				defer k.end()
				time.Sleep(10*time.Second - time.Duration(time.Now().UnixNano()%int64(10*time.Second)))
				time.Sleep(5 * time.Second) // so all windows but seconds have been open for long
				sums, drew := map[int64]int64{}, 0
				take := func() {
					before := b.total()
					reply := k.take(10)
					for _, w := range reply.GetWindows() {
						if w.GetRate().GetWindowMicros() == int64(second) {
							sums[w.GetIndex()] += reply.GetGranted()
						}
					}
					if reply.GetGranted() > 0 && b.total() > before {
						drew++
					}
				}
				take()
				next()
				k.edit(drawing(2, lengths[0]...))
				take()
				k.edit(drawing(3, lengths[1]...))
				for range 30 {
					take()
					time.Sleep(150 * time.Millisecond)
				}
				if drew < 2 {
					t.Errorf("the budget granted in %d of 5 seconds", drew)
				}
				for index, n := range sums {
					if n > 10 {
						t.Errorf("second %d was granted %d of 10", index, n)
					}
				}
				if f := audited(t, k.p, sums); f.Verdict == audit.Exceeded {
					t.Errorf("sums %v: exceeded by %+v", sums, f.Overshoot)
				}
			})
		})
	}
}

// TestUnitsOfTheStoreDoNotGoToABudgetCreatedAgain, whose clock does not show the window yet that they are of.
func TestUnitsOfTheStoreDoNotGoToABudgetCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared(10)
		b.ahead = -2 * time.Second
		k := newCaller(t, &memoryTerms{}, b, limited("shop", 1, 10, limiter.Second))
		defer k.end()
		time.Sleep(10*time.Second - time.Duration(time.Now().UnixNano()%int64(10*time.Second)))
		next()
		stored := k.take(5)
		next()
		k.edit(drawing(2, 10*limiter.Second))
		k.take(1)
		k.edit(drawing(3, limiter.Second))
		k.take(1)
		before := b.returned
		k.giveBack(5, stored)
		if stored.GetGranted() != 5 || b.returned != before {
			t.Errorf("of %d units of the store %d went to the budget", stored.GetGranted(), b.returned-before)
		}
	})
}

// TestUnitsGoBackToABudgetCreatedAgain, in windows of its new length.
func TestUnitsGoBackToABudgetCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared(50)
		k := newCaller(t, &memoryTerms{}, b, drawing(1, 10*limiter.Second))
		defer k.end()
		next()
		k.take(1)
		k.edit(drawing(2, limiter.Second))
		k.take(1)
		next()
		k.giveBack(2, k.take(5))
		if b.returned != 2 {
			t.Errorf("%d units were given back, want 2", b.returned)
		}
	})
}

// TestABudgetCreatedAgainServesAtOnce by whichever rates, as far as its coordinator grants: no window of
// it, which may last for days, is waited for.
func TestABudgetCreatedAgainServesAtOnce(t *testing.T) {
	second, all := limiter.Second, [][]limiter.Micros{}
	for _, lengths := range [][]limiter.Micros{{1}, {10}, {60}, {1, 10}, {10, 1}, {10, 60}, {1, 10, 60}} {
		for i := range lengths {
			lengths[i] *= second
		}
		all = append(all, lengths)
	}
	for _, before := range all {
		for _, after := range all {
			synctest.Test(t, func(t *testing.T) {
				b := newShared(1000)
				k := newCaller(t, &memoryTerms{}, b, drawing(1, before...))
				defer k.end()
				time.Sleep(time.Minute - time.Duration(time.Now().UnixNano()%int64(time.Minute)) + 500*time.Millisecond)
				k.take(1)
				k.edit(drawing(2, after...))
				for range 3 {
					if reply := k.take(1); reply.GetGranted() != 1 || len(reply.GetWindows()) != len(after) {
						t.Errorf("from windows of %v to %v: %v", before, after, reply)
					}
					next()
				}
			})
		}
	}
}

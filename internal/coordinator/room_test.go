package coordinator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// keysHeld are the counters that a store holds, and when they stop to count.
type keysHeld map[store.Key]limiter.Instant

func (h keysHeld) Len() int { return len(h) }

func (h keysHeld) Has(key store.Key) bool { _, ok := h[key]; return ok }

func (h keysHeld) Counts(key store.Key, now limiter.Instant) bool { return now < h[key] }

// dailyOf is one of the limits of a namespace; sidecars track any number of the limit's
// values.
func dailyOf(namespace, limit string) *published {
	l := daily(fleetKeys)
	l.scope = store.Scope{Namespace: namespace, Policy: "p", Limit: limit}
	return l
}

func TestKeysIn(t *testing.T) {
	const container = 512 << 20
	for heap, want := range map[int64]int{container * 8 / 10: usualKeys, 4 * container * 8 / 10: 4 * usualKeys, math.MaxInt64: usualKeys} {
		if got := keysIn(heap); got < want-want/500 || got > want+want/500 {
			t.Errorf("a heap of %d bytes has room for %d keys, want about %d", heap, got, want)
		}
	}
}

// TestAllLimitsShareOneRoom: a namespace takes half of what those before it left, over all
// of its limits.
func TestAllLimitsShareOneRoom(t *testing.T) {
	c := newCounters(keysHeld{}, 800)
	for i, want := range []int{400, 200, 100} {
		own := 0
		for value := range 1000 {
			if c.own(t, dailyOf(fmt.Sprint("ns", i), fmt.Sprint(value%3)), fmt.Sprint(value), 1, midnight) {
				own++
			}
		}
		if own != want {
			t.Errorf("namespace %d has %d counters, want %d", i, own, want)
		}
	}
}

// TestWhatIsHandedOverTakesRoom, and keeps its counters.
func TestWhatIsHandedOverTakesRoom(t *testing.T) {
	l, handed := dailyOf("shop", "all"), keysHeld{}
	for i := range 60 {
		handed[store.Key{Scope: l.scope, Hash: store.HashValue(fmt.Sprint(i))}] = midnight.Add(limiter.Day)
	}
	c, own := newCounters(handed, 100), 0
	for i := range 200 {
		if c.own(t, l, fmt.Sprint("new", i), 1, midnight) {
			own++
		}
	}
	if own != 40 {
		t.Errorf("%d new values have counters of their own, want 40", own)
	}
}

func TestAHeldCounterIsNotExchanged(t *testing.T) {
	l, handed := dailyOf("shop", "all"), keysHeld{}
	for i := range 100 {
		handed[store.Key{Scope: l.scope, Hash: store.HashValue(fmt.Sprint(i))}] = midnight.Add(limiter.Day)
	}
	c := newCounters(handed, 50)
	for i := range 100 {
		if !c.own(t, l, fmt.Sprint(i), 1, midnight) {
			t.Fatalf("value %d, which was granted from its own counter, shares one", i)
		}
	}
	if c.own(t, l, "new", 1, midnight) {
		t.Error("there is room for another one")
	}
}

// TestTheRoomIsGivenBack, all of it, whatever is asked for.
func TestTheRoomIsGivenBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	c, now := newCounters(keysHeld{}, 200), midnight
	for range 20_000 {
		now = now.Add(limiter.Micros(rng.IntN(200)) * limiter.Second)
		l := dailyOf(fmt.Sprint("ns", rng.IntN(3)), fmt.Sprint(rng.IntN(3)))
		c.own(t, l, fmt.Sprint(rng.IntN(400)), 1, now)
		if rng.IntN(100) == 0 {
			c.sweep(now)
		}
		total := 0
		for _, h := range c.byScope {
			total += h.size()
		}
		if c.room.taken != total || total > 200 {
			t.Fatalf("%d counters are counted as %d, at most 200 should be", total, c.room.taken)
		}
	}
	if c.sweep(now.Add(3 * limiter.Day)); c.room.taken != 0 || len(c.room.takenBy) != 0 {
		t.Errorf("%d places are taken by nobody: %v", c.room.taken, c.room.takenBy)
	}
}

// TestWhoSharedACounterBeforeAHandOverSharesItAfter: its own would be a second budget.
func TestWhoSharedACounterBeforeAHandOverSharesItAfter(t *testing.T) {
	l := dailyOf("shop", "all")
	handed := keysHeld{{Scope: l.scope, Hash: overflowHash}: midnight.Add(limiter.Day)}
	for i := range 10 {
		handed[store.Key{Scope: l.scope, Hash: store.HashValue(fmt.Sprint(i))}] = midnight.Add(limiter.Day)
	}
	c := newCounters(handed, usualKeys)
	if c.own(t, l, "unknown", 1, midnight) {
		t.Error("a value that may have been granted from the shared counter has one of its own")
	}
	for i := range 10 {
		if !c.own(t, l, fmt.Sprint(i), 1, midnight) {
			t.Errorf("value %d, which was granted from its own counter, shares one", i)
		}
	}
	if next := midnight.Add(limiter.Day); !c.own(t, l, "unknown", 1, next) {
		t.Error("the places of the next window are not free")
	}
	other := dailyOf("shop", "other")
	handed[store.Key{Scope: other.scope, Hash: overflowHash}] = midnight
	if !c.own(t, other, "unknown", 1, midnight) {
		t.Error("another limit, whose shared counter was in use the day before, has no places")
	}
}

// TestALimitWithoutRoomIsNamed as long as values share a counter of it.
func TestALimitWithoutRoomIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 10 * time.Second
		p := keyed(limited("shop", 1, 10, limiter.Micros(window.Microseconds())), 2)
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		full := func() int {
			time.Sleep(auditInterval)
			synctest.Wait()
			return testutil.CollectAndCount(l.metrics.sharing)
		}
		ask := func(values ...string) {
			s := l.connect(pod("shop", "a"), "1")
			defer s.close()
			for _, value := range values {
				s.lease(p, p.Limits[0], func(r *fleetpb.LeaseRequest) { r.Key.Hash = store.HashValue(value) })
			}
		}
		ask("a", "b")
		if n := full(); n != 0 {
			t.Errorf("%d limits are said to be full of two values, of two", n)
		}
		time.Sleep(2 * window) // windows that began before the leader led have ended
		ask("c", "d", "e")
		if n := full(); n != 1 {
			t.Errorf("%d limits are said to be full of three values, of two", n)
		}
		if v := testutil.ToFloat64(l.metrics.sharing.WithLabelValues("shop", "checkout", "all")); v != 1 {
			t.Errorf("it shows %v", v)
		}
		time.Sleep(window)
		if n := full(); n != 0 {
			t.Errorf("%d limits are said to be full when the window is over", n)
		}
	})
}

package coordinator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// midnight is the begin of a window of a day.
const midnight = limiter.Instant(20_000 * int64(limiter.Day))

func daily(most int) *published {
	return &published{span: limiter.Rate{Limit: 100, Window: limiter.Day}, most: most, keyed: true}
}

var (
	taking     = limiter.Command{Op: limiter.Take, Min: 1, Want: 1}
	oneSidecar = func() int { return 1 }
)

// own reports whether a take of the value's is decided on a counter of its own.
func (c *counters) own(t *testing.T, l *published, value string, sidecars int, now limiter.Instant) bool {
	t.Helper()
	hash := store.HashValue(value)
	got, ok := c.of(l, hash, taking, func() int { return sidecars }, now)
	if !ok || got != hash && got != store.SharedHash(store.ShareOf(hash, l.shared)) {
		t.Fatalf("value %q is decided on counter %q, %t", value, got, ok)
	}
	return got == hash
}

// TestPlacesAreFreeWhenTheirWindowsAreOver with other values in every window.
func TestPlacesAreFreeWhenTheirWindowsAreOver(t *testing.T) {
	const most = 25
	c, l := newCounters(keysHeld{}, usualKeys), daily(most)
	for d := range 8 {
		begin, own := midnight.Add(limiter.Micros(d)*limiter.Day), 0
		for i := range 2 * most {
			if c.own(t, l, fmt.Sprintf("%d/%d", d, i), 1, begin.Add(limiter.Micros(i)*limiter.Second)) {
				own++
			}
		}
		if own != most {
			t.Errorf("day %d: %d values have counters of their own, want %d", d, own, most)
		}
	}
}

// TestThePlacesFitTheFleet, up to a bound that a fleet of any size keeps to.
func TestThePlacesFitTheFleet(t *testing.T) {
	for _, tc := range []struct{ most, sidecars, want int }{
		{10, 0, 10},
		{10, 1, 10},
		{10, 7, 70},
		{fleetKeys / 2, 500, fleetKeys},
		{fleetKeys + 10, 500, fleetKeys + 10},
	} {
		c, l, own := newCounters(keysHeld{}, usualKeys), daily(tc.most), 0
		for i := range tc.want + 10 {
			if c.own(t, l, fmt.Sprint(i), tc.sidecars, midnight) {
				own++
			}
		}
		if own != tc.want {
			t.Errorf("%d sidecars of %d keys: %d places, want %d", tc.sidecars, tc.most, own, tc.want)
		}
	}
}

// TestAValueKeepsToOneCounterInAWindow, though sidecars come and make room: what it was
// granted from the shared one counts there only.
func TestAValueKeepsToOneCounterInAWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	c, l := newCounters(keysHeld{}, usualKeys), daily(5)
	for d := range 50 {
		was := map[string]bool{}
		for i := range 200 {
			now := midnight.Add(limiter.Micros(d)*limiter.Day + limiter.Micros(i)*limiter.Second)
			value := fmt.Sprint(rng.IntN(30))
			own := c.own(t, l, value, 1+i/50, now)
			if before, asked := was[value]; asked && before != own {
				t.Fatalf("day %d: value %s changed to a counter of its own: %t", d, value, own)
			}
			was[value] = own
			if h := c.byScope[l.scope]; len(h.now)+len(h.before) > 2*5*4 {
				t.Fatalf("day %d: %d values of this day and %d of the one before have counters", d, len(h.now), len(h.before))
			}
		}
	}
}

// TestThePlacesOfTwoWindowsAreBounded: values that are asked for on and on keep their
// counters, and leave no room for ever more.
func TestThePlacesOfTwoWindowsAreBounded(t *testing.T) {
	const most = 5
	c, l := newCounters(keysHeld{}, usualKeys), daily(most)
	for d := range 4 {
		for i := range (d + 1) * most { // those of the days before last
			c.own(t, l, fmt.Sprint((d*most+i)%((d+1)*most)), 1, midnight.Add(limiter.Micros(d)*limiter.Day))
		}
		if h := c.byScope[l.scope]; len(h.now)+len(h.before) > 2*most {
			t.Errorf("day %d: %d values have counters, want at most %d", d, len(h.now)+len(h.before), 2*most)
		}
	}
}

func TestSharedCountersAndValuesWithRatesOfTheirOwnNeedNoPlace(t *testing.T) {
	c, l, vip := newCounters(keysHeld{}, usualKeys), daily(1), store.HashValue("vip")
	l.own = map[string]limiter.Params{vip: {}}
	c.own(t, l, "a", 1, midnight)
	if c.own(t, l, "b", 1, midnight) {
		t.Fatal("there is a second place")
	}
	for _, hash := range []string{"", store.SharedHash(0), vip} {
		if got, ok := c.of(l, hash, taking, oneSidecar, midnight); got != hash || !ok {
			t.Errorf("counter %q is decided on %q, %t", hash, got, ok)
		}
	}
}

func TestALookTakesNoPlace(t *testing.T) {
	c, l := newCounters(keysHeld{}, usualKeys), daily(1)
	peek := limiter.Command{Op: limiter.Peek, Min: 1, Want: 1}
	for _, value := range []string{"a", "b"} {
		if got, _ := c.of(l, store.HashValue(value), peek, oneSidecar, midnight); got != store.HashValue(value) {
			t.Errorf("value %s is looked up on another counter", value)
		}
	}
	c.own(t, l, "c", 1, midnight)
	if got, _ := c.of(l, store.HashValue("d"), peek, oneSidecar, midnight); got != store.SharedHash(0) {
		t.Error("a value without a place is not looked up on the shared counter")
	}
	if h := c.byScope[l.scope]; len(h.shared.chosen) > 0 {
		t.Error("who looks uses the shared counter")
	}
}

// TestReturnsGoWhereTheyCameFrom, or nowhere when that is not sure.
func TestReturnsGoWhereTheyCameFrom(t *testing.T) {
	c, l := newCounters(keysHeld{}, usualKeys), daily(2)
	back := func(value string, now limiter.Instant, w limiter.Instant) bool {
		cmd := limiter.Command{Op: limiter.Return, Want: 1, Windows: limiter.Windows{N: 1}}
		cmd.Windows.Open[0] = l.span.WindowAt(w)
		got, ok := c.of(l, store.HashValue(value), cmd, oneSidecar, now)
		return ok && got == store.HashValue(value)
	}
	if !back("handed over", midnight, midnight) {
		t.Error("what the leader before granted does not go back while no counter is shared")
	}
	for _, value := range []string{"a", "b", "c"} {
		c.own(t, l, value, 1, midnight)
	}
	for value, want := range map[string]bool{"a": true, "b": true, "c": false, "handed over": false} {
		if got := back(value, midnight, midnight); got != want {
			t.Errorf("what %s gives back is taken: %t, want %t", value, got, want)
		}
	}
	next := midnight.Add(limiter.Day)
	c.own(t, l, "c", 1, next)
	if back("c", next, midnight) {
		t.Error("what was granted from the shared counter goes back to the value's own")
	}
	if !back("c", next, next) {
		t.Error("what the value's own counter granted does not go back")
	}
}

// TestReturnsAfterAChangeOfLeader go where they came from, where that is known.
func TestReturnsAfterAChangeOfLeader(t *testing.T) {
	l := daily(2)
	for hash, want := range map[string]bool{store.SharedHash(0): false, store.HashValue("a"): true} {
		c := newCounters(keysHeld{{Scope: l.scope, Hash: hash}: midnight.Add(limiter.Day)}, usualKeys)
		cmd := limiter.Command{Op: limiter.Return, Want: 1, Windows: limiter.Windows{N: 1}}
		cmd.Windows.Open[0] = l.span.WindowAt(midnight - 1)
		if _, ok := c.of(l, store.HashValue("a"), cmd, oneSidecar, midnight); ok != want {
			t.Errorf("counter %q counts: what was granted in the window before goes back: %t, want %t", hash, ok, want)
		}
	}
}

// TestAValueThatHadACounterKeepsIt in the next window, though others took the places.
func TestAValueThatHadACounterKeepsIt(t *testing.T) {
	c, l, next := newCounters(keysHeld{}, usualKeys), daily(1), midnight.Add(limiter.Day)
	c.own(t, l, "a", 1, midnight)
	if !c.own(t, l, "b", 1, next) || !c.own(t, l, "a", 1, next) || c.own(t, l, "c", 1, next) {
		t.Error("one of two values has no counter of its own, or a third has")
	}
}

func TestLimitsThatNobodyAsksForAreForgotten(t *testing.T) {
	c, l := newCounters(keysHeld{}, usualKeys), daily(2)
	c.own(t, l, "a", 1, midnight)
	c.sweep(midnight.Add(2*limiter.Day - 1))
	if len(c.byScope) != 1 {
		t.Error("forgotten while counters are kept")
	}
	if c.sweep(midnight.Add(2 * limiter.Day)); len(c.byScope) != 0 {
		t.Error("not forgotten when all counters are gone")
	}
}

// TestWhatHasNoRoomIsObserved as long as values share a counter.
func TestWhatHasNoRoomIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCaller(t, &memoryTerms{}, newShared(1), limited("shop", 1, 10, limiter.Second))
		defer k.term.tasks.ShutDown()
		name := types.NamespacedName{Namespace: "shop", Name: "checkout"}
		limit := func(name string) *published {
			l := daily(3)
			l.scope = store.Scope{Cluster: "test", Namespace: "shop", Policy: "checkout", Limit: name}
			return l
		}
		for i := range 5 {
			for _, l := range []*published{limit("b"), limit("a")} {
				k.term.counters.own(t, l, fmt.Sprint(i), 1, k.term.clock.Now())
			}
		}
		k.term.counters.own(t, limit("roomy"), "one", 1, k.term.clock.Now())
		if got := k.term.observe(name).Crowded; got != nil {
			t.Errorf("before anybody looked: %v", got)
		}
		before := k.term.showSharing(nil)
		if got := k.term.observe(name).Crowded; !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("limits %v have no room, want a and b", got)
		}
		time.Sleep(25 * time.Hour)
		k.term.showSharing(before)
		if got := k.term.observe(name).Crowded; got != nil {
			t.Errorf("when the window is over: %v", got)
		}
	})
}

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
		if c.quota.taken != total || total > 200 {
			t.Fatalf("%d counters are counted as %d, at most 200 should be", total, c.quota.taken)
		}
	}
	if c.sweep(now.Add(3 * limiter.Day)); c.quota.taken != 0 || len(c.quota.takenBy) != 0 {
		t.Errorf("%d places are taken by nobody: %v", c.quota.taken, c.quota.takenBy)
	}
}

// TestWhoSharedACounterBeforeAHandOverSharesItAfter: its own would be a second budget.
func TestWhoSharedACounterBeforeAHandOverSharesItAfter(t *testing.T) {
	l := dailyOf("shop", "all")
	handed := keysHeld{{Scope: l.scope, Hash: store.SharedHash(0)}: midnight.Add(limiter.Day)}
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
	handed[store.Key{Scope: other.scope, Hash: store.SharedHash(0)}] = midnight
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

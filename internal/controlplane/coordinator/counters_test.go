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
	"github.com/weir-dev/weir/pkg/policy"
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

// countedOn returns the counter that a take of the hash is decided on.
func (c *counters) countedOn(t *testing.T, l *published, hash string, now limiter.Instant) string {
	t.Helper()
	got, ok := c.of(l, hash, taking, oneSidecar, now)
	if !ok {
		t.Fatalf("a take of %s is decided on no counter", hash)
	}
	return got
}

// TestInventedValuesDoNotShutOutOthers: a client fills the room of a limit and goes on, and
// others that come then are served from counters that it did not drain.
func TestInventedValuesDoNotShutOutOthers(t *testing.T) {
	const limit, invented, honest = 100, 100_000, 50
	l := daily(16_000)
	l.shared = (&policy.Key{MaxKeys: l.most}).SharedKeys()
	c, granted := newCounters(keysHeld{}, usualKeys), map[string]int{}
	take := func(value string) bool {
		counter := c.countedOn(t, l, store.HashValue(value), midnight)
		granted[counter]++
		return granted[counter] <= limit
	}
	for i := range invented {
		take(fmt.Sprint("invented ", i))
	}
	if n := len(granted); n != l.most+l.shared {
		t.Fatalf("the client uses %d counters, want %d of its own and %d that are shared", n, l.most, l.shared)
	}
	for i := range honest {
		got := 0
		for range 2 * limit {
			if take(fmt.Sprint("honest ", i)) {
				got++
			}
		}
		if got < limit/4 { // 84,000 values drain 42 of each of 2000 counters
			t.Errorf("client %d: %d requests are admitted, want at least %d", i, got, limit/4)
		}
	}
}

// TestWhatIsSharedKeepsToItsCounterInAWindow, whatever room there is: a value, and the
// shared counters that sidecars ask for.
func TestWhatIsSharedKeepsToItsCounterInAWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	for round := range 20 {
		c := newCounters(keysHeld{}, 20+rng.IntN(60))
		first := map[string]string{}
		for range 3000 {
			l := dailyOf(fmt.Sprint("ns", rng.IntN(2)), "all")
			l.most, l.shared = 1+rng.IntN(40), 8
			hash := store.HashValue(fmt.Sprint(rng.IntN(100)))
			if rng.IntN(4) == 0 {
				hash = store.SharedHash(rng.IntN(l.shared))
			}
			got, asked := c.countedOn(t, l, hash, midnight), l.scope.Namespace+hash
			if before, ok := first[asked]; ok && got != before {
				t.Fatalf("round %d: %s is counted on %s first and on %s later", round, hash, before, got)
			}
			first[asked] = got
			i, named := store.SharedBy(hash)
			if !named {
				i = store.ShareOf(hash, l.shared)
			}
			if got != hash && got != store.SharedHash(i) && got != store.SharedHash(0) {
				t.Fatalf("%s is counted on %s", hash, got)
			}
		}
		if c.quota.taken > c.quota.most {
			t.Fatalf("%d places are taken, of %d", c.quota.taken, c.quota.most)
		}
	}
}

// TestSharedCountersHaveRoomWhenOthersHaveNone, and the first when there is none at all.
func TestSharedCountersHaveRoomWhenOthersHaveNone(t *testing.T) {
	c, l, counted := newCounters(keysHeld{}, 300), dailyOf("shop", "all"), map[string]int{}
	l.shared = 100
	for i := range 5000 {
		hash := store.HashValue(fmt.Sprint(i))
		switch got := c.countedOn(t, l, hash, midnight); got {
		case hash:
			counted["own"]++
		case store.SharedHash(0):
			counted["first"]++
		default:
			counted["shared"]++
		}
	}
	if counted["own"] != 150 || c.quota.taken != 200 || counted["shared"] < counted["first"]/2 || counted["first"] == 0 {
		t.Errorf("values are counted on %v, which take %d of 300 places", counted, c.quota.taken)
	}
	for i := range 100 {
		c.countedOn(t, l, store.SharedHash(i), midnight)
	}
	if c.quota.taken != 200 {
		t.Errorf("shared counters that sidecars name take %d of 300 places, want 200", c.quota.taken)
	}
}

// TestASharedCounterIsOneOfThoseOfTheLimit: a sidecar cannot open others past the bound.
func TestASharedCounterIsOneOfThoseOfTheLimit(t *testing.T) {
	c, l := newCounters(keysHeld{}, usualKeys), daily(2)
	l.shared = 4
	for i := range 100 {
		c.countedOn(t, l, store.SharedHash(i), midnight)
	}
	if h := c.byScope[l.scope]; len(h.now) != 2 || h.shared.places != 3 {
		t.Errorf("%d hashes have places and %d counters are shared beside the first, want 2 and 3", len(h.now), h.shared.places)
	}
	if h := c.byScope[l.scope]; !h.shared.full {
		t.Error("values that have no place do not make the limit full")
	}
}

// TestSidecarsThatShareDoNotFillTheLimit: that a sidecar has no room says nothing of the
// store.
func TestSidecarsThatShareDoNotFillTheLimit(t *testing.T) {
	c, l := newCounters(keysHeld{}, usualKeys), daily(10)
	c.countedOn(t, l, store.SharedHash(0), midnight)
	if len(c.sharing(midnight)) > 0 || !c.own(t, l, "a", 1, midnight) {
		t.Error("a value has no counter of its own, because a sidecar had no room for others")
	}
}

// TestWhatWasSharedStaysSharedAfterAHandOver, counter by counter.
func TestWhatWasSharedStaysSharedAfterAHandOver(t *testing.T) {
	l := dailyOf("shop", "all")
	l.shared = 5
	for _, handed := range []int{3, 0} { // the first may stand in for all
		c := newCounters(keysHeld{{Scope: l.scope, Hash: store.SharedHash(handed)}: midnight.Add(limiter.Day)}, usualKeys)
		for i := range 100 {
			hash := store.HashValue(fmt.Sprint(i))
			want := hash
			if handed == 0 || store.ShareOf(hash, l.shared) == handed {
				want = store.SharedHash(handed)
			}
			if got := c.countedOn(t, l, hash, midnight); got != want {
				t.Errorf("counter %d is in use: value %d is counted on %s, want %s", handed, i, got, want)
			}
		}
		if got := c.countedOn(t, l, store.SharedHash(3), midnight); got != store.SharedHash(handed) {
			t.Errorf("counter %d is in use: another leader counted what sidecars share on it, this one on %s", handed, got)
		}
	}
}

// TestAnEditOfTheSharedCountersWaits for the next window.
func TestAnEditOfTheSharedCountersWaits(t *testing.T) {
	c, l := newCounters(keysHeld{}, usualKeys), daily(1)
	for _, tc := range []struct {
		now          limiter.Instant
		shared, want int
	}{{midnight, 50, 50}, {midnight.Add(3600 * limiter.Second), 7, 50}, {midnight.Add(limiter.Day), 7, 7}} {
		l.shared = tc.shared
		c.countedOn(t, l, store.HashValue(fmt.Sprint("takes the place ", tc.now)), tc.now)
		for i := range 60 {
			hash := store.HashValue(fmt.Sprint("value ", i))
			if got := c.countedOn(t, l, hash, tc.now); got != store.SharedHash(store.ShareOf(hash, tc.want)) {
				t.Fatalf("%d counters are shared since this window: value %d is not counted on one of %d", tc.shared, i, tc.want)
			}
		}
	}
}

// TestReturnsToSharedCounters go where they came from, or nowhere.
func TestReturnsToSharedCounters(t *testing.T) {
	c, l, next := newCounters(keysHeld{}, 4), dailyOf("shop", "all"), midnight.Add(limiter.Day)
	l.shared = 10
	moved := 0
	for i := range l.shared {
		if c.countedOn(t, l, store.SharedHash(i), midnight) != store.SharedHash(i) {
			moved = i
		}
	}
	if moved < 2 || c.countedOn(t, l, store.SharedHash(1), midnight) != store.SharedHash(1) {
		t.Fatal("the test needs a counter that has room and one that has none")
	}
	for _, tc := range []struct {
		i       int
		now, of limiter.Instant
		want    bool
	}{
		{0, midnight, midnight, true},
		{1, midnight, midnight, true},
		{moved, midnight, midnight, false}, // the first stood in for it
		{1, next, midnight, true},
		{moved, next, midnight, false},
		{moved, next, next, true},
	} {
		cmd := limiter.Command{Op: limiter.Return, Want: 1, Windows: limiter.Windows{N: 1}}
		cmd.Windows.Open[0] = l.span.WindowAt(tc.of)
		got, ok := c.of(l, store.SharedHash(tc.i), cmd, oneSidecar, tc.now)
		if ok != tc.want || got != store.SharedHash(tc.i) {
			t.Errorf("%+v: units go back to counter %s: %t", tc, got, ok)
		}
	}
}

package coordinator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

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

package simulate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestEventsHappenInOrder(t *testing.T) {
	type mark struct{ at, nth int64 }
	rng := rand.New(rand.NewPCG(1, 1))
	var q queue
	var want, got []mark
	for nth := range int64(1000) {
		m := mark{rng.Int64N(50), nth}
		want = append(want, m)
		q.add(m.at, func() { got = append(got, m) })
	}
	for range want {
		q.take().do()
	}
	slices.SortStableFunc(want, func(a, b mark) int { return int(a.at - b.at) })
	if !slices.Equal(got, want) {
		t.Error("events of one instant did not happen in the order in which they were added")
	}
	if _, ok := q.next(); ok {
		t.Error("an empty queue has a next event")
	}
}

func TestAClockShowsTheReadingThatIsAwaited(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	c := clock{read: -5_000_000_000, rate: 0.01}
	for now := instant(0); now < 1e10; now += rng.Int64N(1e8) {
		read := c.at(now) + rng.Int64N(1e9)
		if at := c.when(read); c.at(at) < read || c.at(at-2) >= read {
			t.Fatalf("shows %d at %d and %d shortly before, want %d not long after it is first shown", c.at(at), at, c.at(at-2), read)
		}
		before := c.at(now)
		c.drift(now, 0.02*rng.Float64()-0.01)
		if after := c.at(now); after != before {
			t.Fatalf("stepped from %d to %d when its rate changed", before, after)
		}
	}
}

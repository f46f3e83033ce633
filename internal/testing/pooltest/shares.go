package pooltest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

func testShares(t *testing.T, h *harness) {
	a := h.open(t, fixed(11), "a")
	a.wants(t, 11)
	b, c := a.with("b"), a.with("c")
	b.wants(t, 0) // a uses all
	a.wants(t, 6)
	b.wants(t, 0) // a did not confirm the smaller share
	a.wants(t, 6)
	b.wants(t, 5)
	c.wants(t, 0)
	a.wants(t, 4)
	b.wants(t, 4)
	a.wants(t, 4)
	b.wants(t, 4)
	c.wants(t, 3)
	a.inFlight, b.inFlight = 2, 1
	a.beat(t)
	b.beat(t)
	want := pool.Grant{
		Seq: c.seq + 1, Term: c.Term, Generation: c.Generation, Share: 3, TTL: long,
		Limit: 11, Holders: 3, Granted: 11, InFlight: 3, Occupied: 11, Bound: 11,
	}
	if got := c.beat(t); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func testAcknowledged(t *testing.T, h *harness) {
	a := h.open(t, fixed(8), "a")
	a.wants(t, 8)
	b := a.with("b")
	b.wants(t, 0)
	a.inFlight = 7
	a.wants(t, 4)
	b.wants(t, 0)
	a.wants(t, 4) // confirms, and has more in flight than the share still
	b.wants(t, 1)
	a.inFlight = 4
	a.wants(t, 4)
	b.wants(t, 4)
}

func testOccupancy(t *testing.T, h *harness) {
	p := fixed(8)
	p.Handoff = pool.Occupancy
	a := h.open(t, p, "a")
	a.inFlight = 5
	a.wants(t, 8)
	b := a.with("b")
	b.wants(t, 0)
	a.wants(t, 4)
	b.wants(t, 3) // a was not seen to confirm, but has 5 in flight
}

func testDemand(t *testing.T, h *harness) {
	p := fixed(9)
	p.Allocation = pool.DemandProportional
	idle := h.open(t, p, "idle")
	idle.wants(t, 1)
	busy, busier := idle.with("busy"), idle.with("busier")
	idle.beat(t)
	busy.wants(t, 8)
	busy.inFlight = 8
	busier.wants(t, 0)
	busy.wants(t, 4)
	busy.inFlight = 4
	busy.wants(t, 4)
	busier.wants(t, 4)
}

func testLimits(t *testing.T, h *harness) {
	p := pool.Params{Min: 3, Max: 30, Initial: 10, TTL: long, Quarantine: short, Generation: 1}
	a := h.open(t, p, "a")
	fleet := []*member{a, a.with("b"), a.with("c"), a.with("d")}
	for _, step := range []struct {
		aggregate pool.Aggregate
		who       int
		infers    int64
		want      int64
	}{
		{pool.Median, 0, 0, 10}, // nobody infers one
		{pool.Median, 0, 20, 20},
		{pool.Median, 1, 8, 8}, // the lower of two
		{pool.Median, 2, 12, 12},
		{pool.Median, 3, 0, 12}, // it has no opinion
		{pool.Median, 3, 25, 12},
		{pool.Min, 3, 25, 8},
		{pool.Min, 1, 1, 3},
		{pool.Median, 1, 0, 20}, // it takes its opinion back
		{pool.Median, 2, 99, 25},
		{pool.Median, 0, 98, 30},
		{pool.Median, 0, 0, 25},
		{pool.Median, 2, 0, 25},
		{pool.Median, 3, 0, 25}, // the last of them stays
	} {
		m := fleet[step.who]
		p.Aggregate = step.aggregate
		p.Generation++
		m.limit, m.params = step.infers, p
		if g := m.beat(t); g.Limit != step.want {
			t.Errorf("%+v: the limit is %d", step, g.Limit)
		}
	}
}

func testOvershoot(t *testing.T, h *harness) {
	a := h.open(t, fixed(4), "a")
	a.beat(t)
	b := a.with("b")
	b.beat(t)
	a.beat(t)
	a.beat(t)
	b.wants(t, 2)
	c := b.command(pool.Beat)
	c.Peak = 5
	if g := b.apply(t, c); g.Occupied != 7 || g.Bound != 4 {
		t.Errorf("3 above its share: occupied %d of %d, want 7 of 4", g.Occupied, g.Bound)
	}
}

func testIsolation(t *testing.T, h *harness) {
	a := h.open(t, fixed(4), "a")
	b := a.with("b")
	b.key.Namespace = "m"
	if g := b.beat(t); g.Quarantined > 0 {
		h.Advance(g.Quarantined)
	}
	b.wants(t, 4)
	a.wants(t, 4)
}

func testGenerations(t *testing.T, h *harness) {
	p := fixed(6)
	p.Generation = 2
	a := h.open(t, p, "a")
	a.params = fixed(60)
	a.wants(t, 6)
	a.params.Generation = 3
	a.wants(t, 60)
}

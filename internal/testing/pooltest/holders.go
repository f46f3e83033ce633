package pooltest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

func testLeave(t *testing.T, h *harness) {
	a := h.open(t, fixed(6), "a")
	a.wants(t, 6)
	b := a.with("b")
	b.wants(t, 0)
	if g := a.leave(t); g.Share != 0 || g.Generation != 0 || g.Holders != 1 || g.Granted != 0 {
		t.Errorf("the holder that left got %+v", g)
	}
	b.wants(t, 6)
	a.Grant = pool.Grant{}
	if g := a.leave(t); g.Holders != 1 || g.Share != 0 {
		t.Errorf("a holder that leaves twice got %+v", g)
	}
}

func testExpiry(t *testing.T, h *harness) {
	p := fixed(6)
	p.TTL = short
	a := h.open(t, p, "a")
	b := a.with("b")
	a.inFlight = 2
	if g := a.beat(t); g.TTL != short {
		t.Errorf("the share lasts %d, want %d", g.TTL, short)
	}
	b.wants(t, 0)
	h.Advance(short)
	b.wants(t, 6)
	before := a.Generation
	if g := a.beat(t); g.Share != 0 || g.Generation <= before || g.Holders != 2 {
		t.Errorf("a holder that comes back after its share expired got %+v", g)
	}
}

func testStale(t *testing.T, h *harness) {
	a := h.open(t, fixed(6), "a")
	b := a.with("b")
	first := a.command(pool.Beat)
	first.InFlight, first.Peak = 6, 6
	late := a.command(pool.Beat)
	a.wants(t, 6)
	b.wants(t, 0)
	a.wants(t, 3)
	want := a.Grant
	want.Occupied = 6 // nothing else happened
	for name, c := range map[string]pool.Command{
		"late":                      first,
		"later":                     late,
		"repeated":                  {Op: pool.Beat, Holder: "a", Seq: a.seq, Term: a.Term, Applied: a.Generation},
		"late, and would leave":     {Op: pool.Leave, Holder: "a", Seq: 1},
		"late, and reports another": {Op: pool.Beat, Holder: "a", Seq: 1, Limit: 3, Held: 6},
	} {
		got := a.apply(t, c)
		got.TTL = want.TTL // less of it is left
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	b.wants(t, 0)
	a.wants(t, 3)
	b.wants(t, 3)
}

func testRestartedHolder(t *testing.T, h *harness) {
	p := fixed(6)
	p.TTL = short
	a := h.open(t, p, "pod/1")
	a.wants(t, 6)
	again := a.with("pod/2")
	again.wants(t, 0) // what the first has in flight may run still
	h.Advance(short)
	again.wants(t, 6)

	same := again.with("pod/2") // numbers its commands from 1 again
	if g := same.beat(t); g.Seq != again.seq {
		t.Errorf("a number was used twice and changed something: %+v", g)
	}
	h.Advance(short)
	same.seq = 0
	same.Grant = pool.Grant{}
	same.wants(t, 6)
}

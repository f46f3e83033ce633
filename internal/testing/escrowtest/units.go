package escrowtest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/escrow"
)

func testUnits(t *testing.T, h *harness) {
	r := h.region(t)
	r.takes(0)
	r.answered(epoch(5, 1), 10)
	got := r.do(escrow.Command{Op: escrow.Take, Min: 2, Want: 4})
	want := escrow.Result{
		Granted: 4, Now: got.Now, Epoch: epoch(5, 1), ExpiresIn: got.ExpiresIn, Remaining: 6, Taken: 4, Asked: 4,
	}
	if got != want || got.ExpiresIn <= long/2 || got.ExpiresIn > long {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := r.do(escrow.Command{Op: escrow.Take, Min: 7, Want: 8}); got.Granted != 0 || got.Asked != 12 {
		t.Errorf("7 of 6: got %+v", got)
	}
	r.takes(6)
	if got := r.returns(4, 2); got.Granted != 0 {
		t.Errorf("of another window: got %+v", got)
	}
	if got := r.returns(5, 90); got.Granted != 10 || got.Remaining != 10 {
		t.Errorf("more than was taken: got %+v", got)
	}
	r.answered(epoch(5, 2), 2)
	r.takes(12)
	r.answered(epoch(5, 1), 90)
	r.takes(0)
}

func testEnd(t *testing.T, h *harness) {
	r := h.region(t)
	r.life = short
	r.answered(epoch(5, 1), 10)
	r.takes(10)
	r.returns(5, 4)
	h.Advance(short)
	r.takes(0)
	if got := r.returns(5, 4); got != (escrow.Result{Now: got.Now}) {
		t.Errorf("got %+v", got)
	}
	if asked := r.ask(); asked.Told != 10 || asked.From != epoch(5, 1) {
		t.Errorf("sent %+v", asked)
	}
	r.answered(epoch(6, 1), 3)
	r.takes(3)
}

func testRelease(t *testing.T, h *harness) {
	r := h.region(t)
	r.answered(epoch(5, 1), 10)
	r.do(escrow.Command{Op: escrow.Take, Min: 4, Want: 4})
	late := r.ask()
	released := r.release(1)
	want := escrow.Result{
		Now: released.Now, Epoch: epoch(5, 1), ExpiresIn: released.ExpiresIn, Remaining: 1, Taken: 4, Asked: 4,
		Holder: "one", Seq: 3, Told: 5, From: epoch(5, 1), Slice: 3,
	}
	if released != want {
		t.Errorf("got %+v, want %+v", released, want)
	}
	r.fill(late, epoch(5, 1), 30)
	r.fill(released, epoch(5, 1), 5)
	r.takes(1)
	r.answered(epoch(5, 1), 8)
	r.takes(3)
}

func testSlice(t *testing.T, h *harness) {
	r := h.region(t)
	if got := r.open(4, r.peek().Now); got.Remaining != 0 {
		t.Errorf("before one was granted: got %+v", got)
	}
	r.answered(epoch(5, 1), 10)
	r.open(5, r.peek().Now)
	r.takes(10)
	h.Advance(1)
	if got := r.open(6, r.peek().Now.Add(-long)); got.Epoch != epoch(5, 1) {
		t.Errorf("one that began before the memory: got %+v", got)
	}
	r.open(6, r.peek().Now)
	r.takes(3)
	r.open(6, r.peek().Now)
	r.takes(0)
	r.answered(epoch(6, 1), 4)
	r.takes(4)
}

func testIsolation(t *testing.T, h *harness) {
	a, b := h.region(t), h.region(t)
	b.id, b.name = a.id+"/b", "two"
	a.answered(epoch(5, 1), 10)
	b.takes(0)
	if asked := b.ask(); asked.Seq != 1 || asked.Holder != "two" {
		t.Errorf("sent %+v", asked)
	}
	a.takes(10)
}

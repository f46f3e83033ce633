package escrowtest

import "testing"

func testForget(t *testing.T, h *harness) {
	if len(h.Forget) == 0 {
		t.Fatal("the subject names no way to forget")
	}
	for how, forget := range h.Forget {
		t.Run(how, func(t *testing.T) {
			r := h.region(t)
			r.answered(epoch(5, 1), 10)
			r.takes(10)
			late := r.ask()

			began := r.peek().Now
			h.Escrow = forget()
			r.takes(0)
			if got := r.returns(5, 4); got.Granted != 0 {
				t.Errorf("what another escrow had: got %+v", got)
			}
			r.name = "another"
			asked := r.ask()
			if asked.Holder != "another" || asked.Seq != 1 || asked.Told != 0 || asked.From != epoch(0, 0) || asked.Slice != 0 {
				t.Errorf("sent %+v", asked)
			}
			late.Seq = asked.Seq
			r.fill(late, epoch(5, 1), 20)
			r.takes(0)

			r.fill(asked, epoch(4, 1), 0)
			h.Advance(1)
			if got := r.open(5, began); got.Remaining != 0 {
				t.Errorf("a window that is older than the memory: got %+v", got)
			}
			r.answered(epoch(5, 1), 6)
			r.takes(6)
			r.open(6, r.peek().Now)
			r.takes(3)
		})
	}
}

func testKeep(t *testing.T, h *harness) {
	for how, keep := range h.Keep {
		t.Run(how, func(t *testing.T) {
			r := h.region(t)
			r.answered(epoch(5, 1), 10)
			r.do(take(4))
			h.Escrow = keep()
			if asked := r.ask(); asked.Holder != "one" || asked.Seq != 2 || asked.Told != 10 || asked.Taken != 4 {
				t.Errorf("sent %+v", asked)
			}
			r.takes(6)
		})
	}
}

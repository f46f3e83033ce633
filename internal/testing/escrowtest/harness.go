package escrowtest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A harness adds to a subject what the tests have in common.
type harness struct{ Subject }

// Lengths of time for escrows whose clock can only be waited for: short ends within a
// test, long does not.
const (
	short = limiter.Second
	long  = 600 * limiter.Second
)

// A region is what shares one escrow.
type region struct {
	*testing.T
	h    *harness
	id   string
	name string // that the escrow takes when it has none
	life limiter.Micros
}

func (h *harness) region(t *testing.T) *region {
	return &region{T: t, h: h, id: t.Name(), name: "one", life: long}
}

// do sends a command that must be answered.
func (r *region) do(c escrow.Command) escrow.Result {
	r.Helper()
	got, err := r.h.Escrow.Apply(r.Context(), r.id, c)
	if err != nil {
		r.Fatalf("Apply(%s, %+v): %v", r.id, c, err)
	}
	return got
}

func (r *region) peek() escrow.Result { r.Helper(); return r.do(escrow.Command{Op: escrow.Peek}) }

func (r *region) ask() escrow.Result {
	r.Helper()
	return r.do(escrow.Command{Op: escrow.Ask, Holder: r.name})
}

func (r *region) release(keep int64) escrow.Result {
	r.Helper()
	return r.do(escrow.Command{Op: escrow.Release, Holder: r.name, Keep: keep})
}

// fill brings the answer to a command, which grants a slice of 3 as well.
func (r *region) fill(asked escrow.Result, e ledger.Epoch, granted int64) escrow.Result {
	r.Helper()
	return r.do(escrow.Command{
		Op: escrow.Fill, Holder: asked.Holder, At: asked.Now, ExpiresIn: r.life,
		Grant: ledger.Grant{Reason: ledger.Granted, Seq: asked.Seq, Epoch: e, Granted: granted, Slice: 3},
	})
}

// answered asks and is answered.
func (r *region) answered(e ledger.Epoch, granted int64) escrow.Result {
	r.Helper()
	return r.fill(r.ask(), e, granted)
}

// open opens a window that began at some instant of the escrow's clock.
func (r *region) open(index int64, began limiter.Instant) escrow.Result {
	r.Helper()
	now := r.peek().Now
	return r.do(escrow.Command{
		Op: escrow.Open, Epoch: ledger.Epoch{Index: index}, Slice: 5, At: now, ExpiresIn: r.life, Age: now.Sub(began),
	})
}

// takes asks for 1 to 1000 and expects that many.
func (r *region) takes(units int64) {
	r.Helper()
	got := r.do(escrow.Command{Op: escrow.Take, Min: 1, Want: 1000})
	if got.Granted != units {
		r.Errorf("took %d, want %d: %+v", got.Granted, units, got)
	}
}

func (r *region) returns(index, units int64) escrow.Result {
	r.Helper()
	return r.do(escrow.Command{Op: escrow.Return, Epoch: ledger.Epoch{Index: index}, Want: units})
}

func epoch(index, term int64) ledger.Epoch { return ledger.Epoch{Index: index, Term: term} }

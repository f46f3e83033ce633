package pooltest

import (
	"errors"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// quarantine is long enough that nothing in a test takes longer.
const quarantine = 3 * limiter.Second

func testForget(t *testing.T, h *harness) {
	if len(h.Forget) == 0 {
		t.Fatal("the subject names no way to forget")
	}
	p := fixed(6)
	p.Quarantine = quarantine
	for how, forget := range h.Forget {
		t.Run(how, func(t *testing.T) {
			a := h.open(t, p, "a")
			b, late := a.with("b"), a.with("late")
			a.inFlight = 4
			b.beat(t)
			a.beat(t)
			a.wants(t, 3)
			b.wants(t, 2)

			h.Coordinator = forget()
			joiner := a.with("joiner")
			joiner.wants(t, 0)
			before := b.Term
			b.wants(t, 2)
			if b.Term <= before || b.Quarantined == 0 || b.Quarantined > quarantine || b.TTL > b.Quarantined {
				t.Errorf("a share that was not confirmed: %+v after term %d", b.Grant, before)
			}
			b.wants(t, 2)
			if b.TTL <= b.Quarantined {
				t.Errorf("a share that was confirmed: %+v", b.Grant)
			}
			a.Share = 0 // it expired
			a.wants(t, 0)
			joiner.wants(t, 0)

			h.Advance(b.Quarantined)
			a.inFlight = 0
			a.wants(t, 2)
			if a.Quarantined != 0 {
				t.Errorf("the quarantine does not end: %+v", a.Grant)
			}
			joiner.wants(t, 2)
			late.wants(t, 0)
			a.wants(t, 1)
			late.wants(t, 0)
			a.wants(t, 1)
			late.wants(t, 1)
		})
	}
}

func testKeep(t *testing.T, h *harness) {
	for how, keep := range h.Keep {
		t.Run(how, func(t *testing.T) {
			a := h.open(t, fixed(6), "a")
			b := a.with("b")
			b.wants(t, 0)
			a.wants(t, 3)
			a.wants(t, 3)
			b.wants(t, 3)
			b.beat(t)
			want := b.Grant
			want.Seq++
			h.Coordinator = keep()
			if got := b.beat(t); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			b.with("c").wants(t, 0)
		})
	}
}

// testBehind shows a coordinator that its memory is an old copy. It refuses, or
// begins another memory; it never grants from the old one.
func testBehind(t *testing.T, h *harness) {
	for name, ahead := range map[string]func(*member){
		"of a later term":            func(m *member) { m.Term += 7 },
		"that this memory never had": func(m *member) { m.Generation += 7 },
	} {
		t.Run(name, func(t *testing.T) {
			a := h.open(t, fixed(6), "a")
			a.wants(t, 6)
			b := a.with("b")
			b.Term, b.Generation, b.Share = a.Term, a.Generation, 2
			ahead(b)
			seen := b.Grant
			g, err := h.Coordinator.Apply(t.Context(), b.key, b.params, b.command(pool.Beat))
			unavailable := (*store.UnavailableError)(nil)
			switch {
			case errors.As(err, &unavailable):
			case err != nil:
				t.Errorf("the error is %v, want none or a store.UnavailableError", err)
			case g.Term <= seen.Term || g.Quarantined == 0 || g.Share > 2:
				t.Errorf("got %+v after %+v", g, seen)
			}
		})
	}
}

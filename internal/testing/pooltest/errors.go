package pooltest

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/store"
)

func testCancelled(t *testing.T, h *harness) {
	a := h.open(t, fixed(6), "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Coordinator.Apply(ctx, a.key, a.params, a.command(pool.Beat))
	suite.WantUnavailable(t, err, context.Canceled)
}

func testBroken(t *testing.T, h *harness) {
	a := h.open(t, fixed(6), "a")
	h.Break()
	_, err := h.Coordinator.Apply(t.Context(), a.key, a.params, a.command(pool.Beat))
	suite.WantUnavailable(t, err)
}

func testInvalid(t *testing.T, h *harness) {
	a := h.open(t, fixed(6), "a")
	for field, change := range map[string]func(*pool.Params, *pool.Command){
		"Op":       func(_ *pool.Params, c *pool.Command) { c.Op = 0 },
		"Holder":   func(_ *pool.Params, c *pool.Command) { c.Holder = "" },
		"Seq":      func(_ *pool.Params, c *pool.Command) { c.Seq = 0 },
		"Held":     func(_ *pool.Params, c *pool.Command) { c.Held = -1 },
		"Peak":     func(_ *pool.Params, c *pool.Command) { c.InFlight = 1 },
		"InFlight": func(_ *pool.Params, c *pool.Command) { c.Op, c.InFlight, c.Peak = pool.Leave, 1, 1 },
		"Max":      func(p *pool.Params, _ *pool.Command) { p.Max = 5 },
		"TTL":      func(p *pool.Params, _ *pool.Command) { p.TTL = 0 },
	} {
		p, c := a.params, a.command(pool.Beat)
		c.Peak = 0
		change(&p, &c)
		_, err := h.Coordinator.Apply(t.Context(), a.key, p, c)
		invalid, unavailable := (*pool.InvalidError)(nil), (*store.UnavailableError)(nil)
		if !errors.As(err, &invalid) || errors.As(err, &unavailable) || invalid.Field != field {
			t.Errorf("the error is %v, want a pool.InvalidError that names %s", err, field)
		}
	}
	a.wants(t, 6)
}

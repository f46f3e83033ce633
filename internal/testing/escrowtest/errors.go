package escrowtest

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

func testCancelled(t *testing.T, h *harness) {
	r := h.region(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Escrow.Apply(ctx, r.id, escrow.Command{Op: escrow.Peek})
	suite.WantUnavailable(t, err, context.Canceled)
}

func testBroken(t *testing.T, h *harness) {
	if h.Break == nil {
		t.Skip("nothing makes it unavailable")
	}
	r := h.region(t)
	r.peek()
	h.Break()
	_, err := h.Escrow.Apply(t.Context(), r.id, escrow.Command{Op: escrow.Peek})
	suite.WantUnavailable(t, err)
}

func testInvalid(t *testing.T, h *harness) {
	r := h.region(t)
	r.answered(epoch(5, 1), 10)
	for field, c := range map[string]escrow.Command{
		"Op":           {},
		"Min":          {Op: escrow.Take, Want: 1},
		"Want":         {Op: escrow.Return},
		"Holder":       {Op: escrow.Ask},
		"Keep":         {Op: escrow.Release, Holder: "one", Keep: -1},
		"At":           {Op: escrow.Fill, Holder: "one", Grant: ledger.Grant{Reason: ledger.Granted}},
		"Grant.Reason": {Op: escrow.Fill, Holder: "one", At: 1},
		"Epoch.Index":  {Op: escrow.Open, At: 1},
	} {
		_, err := h.Escrow.Apply(t.Context(), r.id, c)
		invalid, unavailable := (*escrow.InvalidError)(nil), (*store.UnavailableError)(nil)
		if !errors.As(err, &invalid) || errors.As(err, &unavailable) || invalid.Field != field {
			t.Errorf("the error is %v, want an escrow.InvalidError that names %s", err, field)
		}
	}
	r.takes(10)
}

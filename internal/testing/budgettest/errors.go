package budgettest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// wantInvalid expects a plain error that names the field.
func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	invalid, unavailable := (*ledger.InvalidError)(nil), (*store.UnavailableError)(nil)
	if !errors.As(err, &invalid) || errors.As(err, &unavailable) || invalid.Field != field {
		t.Errorf("the error is %v, want a ledger.InvalidError that names %s", err, field)
	}
}

// fails calls whatever a coordinator does and expects it to be unavailable, with the causes.
func (m *holder) fails(ctx context.Context, t *testing.T, causes ...error) {
	t.Helper()
	_, applied := m.h.Coordinator.Apply(ctx, m.id, m.params, m.asking(1, 1))
	_, observed := m.h.Coordinator.Observe(ctx, m.id)
	for _, err := range []error{applied, observed} {
		suite.WantUnavailable(t, err, causes...)
	}
}

func testCancelled(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.fails(ctx, t, context.Canceled)
	a.wants(t, 10, 10, ledger.Granted)
}

func testBroken(t *testing.T, h *harness) {
	if h.Break == nil {
		t.Skip("nothing breaks it")
	}
	a := h.open(t, h.firstCome(10))
	h.Break()
	a.fails(t.Context(), t)
}

// testSuspended waits for a coordinator that does not answer, with and without a deadline.
func testSuspended(t *testing.T, h *harness) {
	if h.Suspend == nil {
		t.Skip("nothing suspends it")
	}
	const patience = 10 * time.Second // of callers that name no deadline
	a := h.open(t, h.firstCome(10))
	resume := h.Suspend()
	for name, limit := range map[string]time.Duration{"by the deadline": 200 * time.Millisecond, "by itself": time.Hour} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		began := time.Now()
		a.fails(ctx, t)
		if took := time.Since(began); took > patience {
			t.Errorf("%s: gave up after %v", name, took)
		}
		cancel()
	}
	resume()
	for deadline := time.Now().Add(patience); ; {
		g, err := h.Coordinator.Apply(t.Context(), a.id, a.params, a.asking(1, 1))
		if err == nil {
			if g.Reason != ledger.Granted {
				t.Errorf("got %+v", g)
			}
			return
		}
		suite.WantUnavailable(t, err)
		if time.Now().After(deadline) {
			t.Fatalf("not served after it was resumed: %v", err)
		}
	}
}

func testInvalidCommand(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	for field, change := range map[string]func(*ledger.Command){
		"op":                func(c *ledger.Command) { c.Op = 0 },
		"member":            func(c *ledger.Command) { c.Member = "" },
		"holder":            func(c *ledger.Command) { c.Holder = "" },
		"seq":               func(c *ledger.Command) { c.Seq = 0 },
		"epoch.index":       func(c *ledger.Command) { c.Epoch.Index = -1 },
		"epoch.term":        func(c *ledger.Command) { c.Epoch.Term = -1 },
		"granted":           func(c *ledger.Command) { c.Granted = -1 },
		"min":               func(c *ledger.Command) { c.Min = 0 },
		"want":              func(c *ledger.Command) { c.Want = 0 },
		"demand":            func(c *ledger.Command) { c.Demand = -1 },
		"weight":            func(c *ledger.Command) { c.Weight = -1 },
		"tenants.unmet":     func(c *ledger.Command) { c.Tenants.Unmet = 1 },
		"tenants.met":       func(c *ledger.Command) { c.Tenants.Met = -1 },
		"slice":             func(c *ledger.Command) { c.Slice = -1 },
		"usage":             func(c *ledger.Command) { c.Op, c.Usage = ledger.Report, make([]ledger.Usage, ledger.MaxClosed+1) },
		"usage[0].admitted": func(c *ledger.Command) { c.Op, c.Usage = ledger.Report, []ledger.Usage{{Admitted: -1}} },
	} {
		c := a.asking(1, 1)
		change(&c)
		_, err := h.Coordinator.Apply(t.Context(), a.id, a.params, c)
		wantInvalid(t, err, field)
	}
	reserve := ledger.Command{Op: ledger.Reserve, Epoch: ledger.Epoch{Index: 1, Term: 1}, Granted: 1}
	_, err := h.Coordinator.Apply(t.Context(), a.id, a.params, reserve)
	wantInvalid(t, err, "op") // only the coordinator itself reserves
	a.wants(t, 10, 10, ledger.Granted)
}

func testInvalidParams(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	for field, change := range map[string]func(*ledger.Params){
		"limit":                func(p *ledger.Params) { p.Limit = 0 },
		"window":               func(p *ledger.Params) { p.Window = 1 },
		"members":              func(p *ledger.Params) { p.Members = nil },
		"members[0].weight":    func(p *ledger.Params) { p.Members[0].Weight = 0 },
		"members[0].nominal":   func(p *ledger.Params) { p.Members[0].Nominal = -1 },
		"members[1].kept":      func(p *ledger.Params) { p.Members[1].Kept = 1 },
		"members[0].borrowing": func(p *ledger.Params) { p.Members[0].Borrowing = 1 << 60 },
		"strategy":             func(p *ledger.Params) { p.Strategy = 99 },
	} {
		p := h.firstCome(10)
		p.Window = a.params.Window
		change(&p)
		_, err := h.Coordinator.Apply(t.Context(), a.id, p, a.asking(1, 1))
		wantInvalid(t, err, field)
	}
	a.wants(t, 10, 10, ledger.Granted)
}

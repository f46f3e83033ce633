package region

import (
	"context"
	"fmt"
	"sync"

	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/birth"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// Births are what this cluster remembers of its budgets. Meet notes that a memory of the
// store that keeps the budget was met, unless another was before or the term is 0, and
// returns what is remembered. It may ask the API server.
type Births interface {
	Meet(ctx context.Context, id string, term int64) (birth.Birth, error)
}

// A voucher is a store that keeps a budget, to which each command says for which memory
// this cluster vouches. Nothing is asked of the store before it is written down which one
// that is.
type voucher struct {
	federation.Coordinator
	births Births

	mu    sync.Mutex   // guards all below, and is held for no call
	of    *birth.Birth // nil before it was read
	store string
}

// vouching returns the store that keeps a budget, with the vouches of this cluster; as it
// is where none is remembered.
func vouching(c federation.Coordinator, births Births, of string) federation.Coordinator {
	if births == nil || of == "" {
		return c
	}
	return &voucher{Coordinator: c, births: births, store: of}
}

// Apply implements federation.Coordinator. The first call may ask the store twice.
func (v *voucher) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	names := p.Names()
	b, met := v.remembered(names)
	if !met {
		answer, err := v.meet(ctx, id, p, c)
		if err != nil || answer.Epoch.Term == 0 {
			return answer, err
		}
		b, _ = v.remembered(names)
	}
	c.Born, c.List = b.Vouch(names)
	return v.Coordinator.Apply(ctx, id, p, c)
}

// remembered returns what is remembered of the budget, which lists these members now;
// false before that was read.
func (v *voucher) remembered(names []string) (birth.Birth, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil {
		return birth.Birth{}, false
	}
	*v.of = v.of.Follow(v.store, names)
	return *v.of, true
}

// meet reads what is remembered. For a new budget it asks the store which memory keeps it,
// by a command that is granted nothing, and has that written down. It returns the answer,
// which names no window when nothing is to be asked yet.
func (v *voucher) meet(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	b, err := v.births.Meet(ctx, id, 0)
	answer := ledger.Grant{Epoch: ledger.Epoch{Term: 1}}
	if err == nil && b.Unmet() {
		answer, err = v.Coordinator.Apply(ctx, id, p, ledger.Command{
			Op: ledger.Report, Member: c.Member, Holder: c.Holder, Epoch: c.Epoch, Slice: c.Slice,
		})
		if err != nil || answer.Epoch.Term == 0 {
			return answer, err
		}
		b, err = v.births.Meet(ctx, id, answer.Epoch.Term)
	}
	if err != nil {
		return ledger.Grant{}, &store.UnavailableError{
			Store: "budget " + id, Cause: fmt.Errorf("which memory of its store this cluster met first cannot be noted: %w", err),
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil {
		v.of = &b
	}
	return answer, nil
}

var _ Births = (*hub.Births)(nil)

package region

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// patience is how long a lease waits for units. Sidecars wait for 100 ms, and some of that
// passes on the way; one that gave up would take the controller for away.
const patience = 50 * time.Millisecond

// A part is this cluster's part in one budget.
type part struct {
	id     string
	first  bool // of the rates of its object
	member string
	ledger *line
	escrow *line // nil: in the engine's memory
	kept   [2]place
	engine Engine
	values *keyed.Region // of a budget with a key; the engine itself then grants nothing; else nil

	stop    context.CancelFunc // ends the watch
	watched chan struct{}      // closed when it has ended

	mu     sync.Mutex
	budget policy.FederatedBudget
	seen   sight
	over   map[int64]span // when windows that are over, by index, were found to be
	audit  *budgetaudit.Budget
	sent   int64              // reports that were sent
	wanted map[int64][]string // values of windows that are to be reported exactly
	// measured are the units that were reported of windows that are measured over all members.
	measured map[int64]int64
	face     face // as written last
}

// A sight is the last look at the ledger.
type sight struct {
	state *ledger.State // nil before the first
	err   error         // of the last look
	// keyless is how the hub said last that it keeps the budget without a key; nil when it did not.
	keyless error
	at      time.Time // of the first look, when the ledger was last seen to be open
}

// A span is between the looks before and after something happened.
type span struct{ before, after time.Time }

// newPart returns the part without an engine.
func newPart(b policy.FederatedBudget, log logr.Logger) *part {
	p := &part{
		id: b.ID, first: b.Of == "", member: b.Member, budget: b,
		ledger: newLine(ledgerOf(&b), log),
		kept:   keptAt(&b), over: map[int64]span{}, wanted: map[int64][]string{}, measured: map[int64]int64{}, audit: budgetaudit.New(b.Generation), watched: make(chan struct{}),
	}
	if at := escrowOf(&b); !at.own() {
		p.escrow = newLine(at, log)
	}
	return p
}

// keptAt returns where the budget and what was granted of it are kept, whatever the
// version of the credentials. An engine belongs to one such pair: two ledgers know nothing
// of each other's epochs.
func keptAt(b *policy.FederatedBudget) [2]place {
	return [2]place{ledgerOf(b).anyVersion(), escrowOf(b).anyVersion()}
}

// goesOn reports whether the part's engine can work by b, which has the same id.
func (p *part) goesOn(b *policy.FederatedBudget) bool {
	return p.member == b.Member && p.kept == keptAt(b) && (p.values != nil) == (b.Params.Keys > 0)
}

// name returns that of the FederatedBudget.
func (p *part) name() types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	return nameOf(&p.budget)
}

func nameOf(b *policy.FederatedBudget) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}

// params returns what the budget is divided by, as far as this cluster knows.
func (p *part) params() ledger.Params {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.budget.Params
}

// engineConfig returns what the engine works by.
func engineConfig(b *policy.FederatedBudget) federation.Config {
	return federation.Config{
		ID: b.ID, Member: b.Member, Params: b.Params,
		Outage:   outages[b.OnCoordinatorOutage],
		Batch:    federation.Batch{Fixed: b.Batch.Type == policy.Fixed, Size: b.Batch.Size},
		Patience: patience,
	}
}

// valuesConfig returns what the values of a budget with a key are granted by.
func valuesConfig(b *policy.FederatedBudget) keyed.Config {
	return keyed.Config{ID: b.ID, Member: b.Member, Params: b.Params, Patience: patience}
}

var outages = map[policy.BudgetOutage]federation.Outage{
	policy.BudgetFailClosed:   federation.FailClosed,
	policy.BudgetRegionalOnly: federation.RegionalOnly,
	policy.BudgetNominal:      federation.Nominal,
}

// adopt goes on with b.
func (p *part) adopt(b policy.FederatedBudget) {
	p.mu.Lock()
	changed := p.budget.Params.Window != b.Params.Window
	p.budget = b
	p.audit.Reconfigure(b.Generation)
	if changed {
		clear(p.over) // windows of another length
		clear(p.wanted)
		clear(p.measured)
	}
	p.mu.Unlock()
	p.engine.Reconfigure(engineConfig(&b))
	if p.values != nil {
		p.values.Reconfigure(valuesConfig(&b))
	}
}

// begin makes the engine and looks at the ledger now and then.
func (p *part) begin(c *Config, counts budget.Counts, changed func(types.NamespacedName)) {
	var kept federation.Escrow
	if p.escrow != nil && p.budget.Params.Keys == 0 { // slices of values are in this process's memory
		kept = escrowLine{p.escrow, c.Cluster}
	}
	p.engine = c.New(engineConfig(&p.budget), vouching(ledgerLine{p.ledger}, c.Births, hub.LedgerOf(&p.budget)), kept)
	if p.budget.Params.Keys > 0 {
		p.values = keyed.New(valuesConfig(&p.budget), ledgerLine{p.ledger}, p.engine)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		defer close(p.watched)
		p.watch(ctx, counts, changed)
	}()
}

// Apply has a command of a limit be decided.
func (p *part) Apply(ctx context.Context, key store.Key, params limiter.Params, c limiter.Command) (limiter.Result, error) {
	if p.values != nil {
		return p.values.Apply(ctx, key, params, c)
	}
	return p.engine.Apply(ctx, key, params, c)
}

// stats returns the figures of the engine and, where there are values, of those.
func (p *part) stats() federation.Stats {
	s := p.engine.Stats()
	if p.values == nil {
		return s
	}
	v := p.values.Stats()
	s.Commands, s.Granted, s.Taken, s.Refused = s.Commands+v.Messages, v.Granted, v.Taken, v.Refused
	if v.Reason != 0 {
		s.Grant.Reason, s.Learning = v.Reason, v.Reason == ledger.Amnesia
	}
	return s
}

// close gives back what was not handed on, if that is possible before ctx is done.
func (p *part) close(ctx context.Context) {
	p.stop()
	if p.values != nil {
		p.values.Close()
	}
	p.engine.Close(ctx)
	<-p.watched
}

package region

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// A line is an engine's way to a place. It outlives the connection: when credentials
// change, one that was opened with the new ones takes the place of the other, and
// whatever was granted stays good.
type line struct {
	backend.Handle[*connection]

	log  logr.Logger
	mu   sync.RWMutex
	said string // how the last call failed, as users see it; empty when it did not
}

// newLine returns a line to a place, which is not connected yet.
func newLine(to place, log logr.Logger) *line {
	l := &line{log: log}
	l.Name = to.String()
	l.Fail(errNotYet)
	return l
}

// shown returns the error of a call without what a server sent: statuses show it, and
// sidecars are sent it. The log has all of it, when it is another than before.
func (l *line) shown(on *connection, err error) error {
	if on.own() {
		return err
	}
	out := plain(err)
	if l.says(textOf(out)) && err != nil {
		l.log.Error(detailed(err), "what keeps a budget does not answer", "place", l.Name)
	}
	return out
}

// says notes how a call failed, and reports whether that is news.
func (l *line) says(text string) bool {
	l.mu.RLock()
	news := l.said != text
	l.mu.RUnlock()
	if news {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.said = text
	}
	return news
}

// certified returns when the certificate ends with which this cluster authenticates; zero
// where it needs none.
func (l *line) certified() time.Time {
	on := l.Look()
	if on == nil || on.hub == nil {
		return time.Time{}
	}
	_, until := on.hub.Renewable()
	return until
}

// A ledgerLine is a line to the coordinator of a budget.
type ledgerLine struct{ *line }

var _ Coordinator = ledgerLine{}

// Apply implements federation.Coordinator. It fails at once while there is no
// connection.
func (l ledgerLine) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	on, err := l.Enter()
	if err != nil {
		return ledger.Grant{}, err
	}
	defer on.Leave()
	g, err := on.ledger.Apply(ctx, id, p, c)
	return g, l.shown(on, err)
}

// Observe implements federation.Coordinator, as Apply.
func (l ledgerLine) Observe(ctx context.Context, id string) (ledger.State, error) {
	on, err := l.Enter()
	if err != nil {
		return ledger.State{}, err
	}
	defer on.Leave()
	state, err := on.ledger.Observe(ctx, id)
	return state, l.shown(on, err)
}

// ApplyKeys implements keyed.Coordinator, as Apply.
func (l ledgerLine) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	on, err := l.Enter()
	if err != nil {
		return keys.Reply{}, err
	}
	defer on.Leave()
	reply, err := on.ledger.ApplyKeys(ctx, id, p, r)
	return reply, l.shown(on, err)
}

// ReportKeys implements Auditor, as Apply. Where values are not measured it is an error.
func (l ledgerLine) ReportKeys(ctx context.Context, id, member string, p ledger.Params, row *budgetaudit.ValueRow) (budgetaudit.Answer, error) {
	on, err := l.Enter()
	if err != nil {
		return budgetaudit.Answer{}, err
	}
	defer on.Leave()
	if on.audit == nil {
		return budgetaudit.Answer{}, errUnmeasured
	}
	answer, err := on.audit.ReportKeys(ctx, id, member, p, row)
	return answer, l.shown(on, err)
}

// An escrowLine is a line to where the cluster keeps what it was granted.
type escrowLine struct {
	*line
	cluster string // others may keep theirs in the same server
}

var _ federation.Escrow = escrowLine{}

// Apply implements federation.Escrow. It fails at once while there is no connection.
func (l escrowLine) Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error) {
	on, err := l.Enter()
	if err != nil {
		return escrow.Result{}, err
	}
	defer on.Leave()
	r, err := on.escrow.Apply(ctx, l.cluster+"/"+id, c)
	return r, l.shown(on, err)
}

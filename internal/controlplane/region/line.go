package region

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// A line is an engine's way to a place. It outlives the connection: when credentials
// change, one that was opened with the new ones takes the place of the other, and
// whatever was granted stays good.
type line struct {
	to    string // as users see it
	log   logr.Logger
	mu    sync.RWMutex
	on    *connection // nil while there is none
	cause error       // why there is none, or no newer one
	said  string      // how the last call failed, as users see it; empty when it did not
}

// connect puts next, nil for none, in the place of the connection, and returns the one
// before. Without one, calls fail with the cause.
func (l *line) connect(next *connection, cause error) (before *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.on, l.cause = l.on, next, cause
	return before
}

// fail says why there is no connection, or no newer one, and reports whether that is
// news.
func (l *line) fail(cause error) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = l.cause == nil || l.cause.Error() != cause.Error()
	l.cause = cause
	return news
}

// enter returns the connection, which is not closed before calls.Done.
func (l *line) enter() (*connection, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.on == nil {
		return nil, &store.UnavailableError{Store: l.to, Cause: l.cause}
	}
	l.on.calls.Add(1)
	return l.on, nil
}

// shown returns the error of a call without what a server sent: statuses show it, and
// sidecars are sent it. The log has all of it, when it is another than before.
func (l *line) shown(on *connection, err error) error {
	if on.own() {
		return err
	}
	out := plain(err)
	if l.says(textOf(out)) && err != nil {
		l.log.Error(detailed(err), "what keeps a budget does not answer", "place", l.to)
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

// place returns what the line is connected to.
func (l *line) place() (p place, connected bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.on == nil {
		return place{}, false
	}
	return l.on.place, true
}

// certified returns when the certificate ends with which this cluster authenticates; zero
// where it needs none.
func (l *line) certified() time.Time {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.on == nil || l.on.hub == nil {
		return time.Time{}
	}
	_, until := l.on.hub.Renewable()
	return until
}

// A ledgerLine is a line to the coordinator of a budget.
type ledgerLine struct{ *line }

var _ federation.Coordinator = ledgerLine{}

// Apply implements federation.Coordinator. It fails at once while there is no
// connection.
func (l ledgerLine) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	on, err := l.enter()
	if err != nil {
		return ledger.Grant{}, err
	}
	defer on.calls.Done()
	g, err := on.ledger.Apply(ctx, id, p, c)
	return g, l.shown(on, err)
}

// Observe implements federation.Coordinator, as Apply.
func (l ledgerLine) Observe(ctx context.Context, id string) (ledger.State, error) {
	on, err := l.enter()
	if err != nil {
		return ledger.State{}, err
	}
	defer on.calls.Done()
	state, err := on.ledger.Observe(ctx, id)
	return state, l.shown(on, err)
}

// An escrowLine is a line to where the cluster keeps what it was granted.
type escrowLine struct {
	*line
	cluster string // others may keep theirs in the same server
}

var _ federation.Escrow = escrowLine{}

// Apply implements federation.Escrow. It fails at once while there is no connection.
func (l escrowLine) Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error) {
	on, err := l.enter()
	if err != nil {
		return escrow.Result{}, err
	}
	defer on.calls.Done()
	r, err := on.escrow.Apply(ctx, l.cluster+"/"+id, c)
	return r, l.shown(on, err)
}

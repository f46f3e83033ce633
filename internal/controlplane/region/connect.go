package region

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/policy"
)

// connect connects the part's lines to where b is kept, in the present version of the
// credentials. A connection stays when another cannot be made.
func (s *Set) connect(ctx context.Context, p *part, b *policy.FederatedBudget) {
	s.reach(ctx, p.ledger, ledgerOf(b), true)
	if p.escrow != nil {
		s.reach(ctx, p.escrow, escrowOf(b), false)
	}
}

// reach connects a line to a place, if it is not, to find budgets there or escrows.
func (s *Set) reach(ctx context.Context, l *line, to place, budgets bool) {
	if on := l.Look(); on != nil && on.place == to {
		return
	}
	c := s.connections.known(to)
	if c == nil {
		var err error
		if c, err = s.open(ctx, to); err != nil {
			s.unreached(l, err)
			return
		}
		s.connections.add(c)
	}
	if !budgets && c.escrow == nil {
		s.connections.release(c)
		s.unreached(l, fmt.Errorf("%s keeps no escrows: name a Redis", to))
		return
	}
	s.connections.release(l.Replace(c, nil))
}

// unreached notes why the line is not connected as it should be.
func (s *Set) unreached(l *line, err error) {
	if l.Fail(err) {
		s.Log.Error(err, "what keeps a budget cannot be reached", "place", l.Name)
	}
}

// open opens a place. It asks the API server for the credentials and waits for nothing
// else.
func (s *Set) open(ctx context.Context, to place) (*connection, error) {
	if to.own() {
		return &connection{ledger: s.Local, audit: s.Auditor, close: func() error { return nil }}, nil
	}
	secret, err := s.Source.Secret(ctx, to.credentials())
	if err != nil {
		return nil, &CredentialsError{Cause: err}
	}
	if to.hub.Endpoint != "" {
		h, err := s.Dial(to.hub, secret)
		if err != nil {
			return nil, &CredentialsError{Cause: err}
		}
		return &connection{place: to, ledger: h, hub: h, audit: h, close: func() error { h.Close(); return nil }}, nil
	}
	server, err := s.Open(to.store, secret)
	if err != nil {
		return nil, &CredentialsError{Cause: err}
	}
	return &connection{place: to, ledger: server.Ledger, escrow: server.Escrow, close: server.Close}, nil
}

package region

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	// followEvery is how often the budgets are read again, so an edit counts that late.
	// Secrets change unseen, so nothing could say when to look.
	followEvery = 2 * time.Second
	// readTime bounds one reading, in which the API server may be asked for Secrets.
	readTime = 10 * time.Second
	// closeTime bounds how long an engine may take to give units back, and the
	// coordinator of this cluster to give up what is set aside.
	closeTime = 2 * time.Second
)

// A Set is the budgets that a leading controller takes part in. Its methods are safe
// for concurrent use.
type Set struct {
	Config
	counts  budget.Counts
	changed func(types.NamespacedName)

	connections connections
	renewals    renewals
	closing     sync.WaitGroup // parts that give back what they have, and renewals

	mu    sync.RWMutex
	parts map[string]*part               // by id
	names map[types.NamespacedName]*part // of the first rates of objects
}

// New returns a Set of nothing, until Run. Reports to coordinators come from
// counts; changed is called with the names of FederatedBudgets when something changed that a
// condition depends on, and does not block.
func New(c Config, counts budget.Counts, changed func(types.NamespacedName)) *Set {
	s := &Set{
		Config: c.normalize(), counts: counts, changed: changed,
		parts: map[string]*part{}, names: map[types.NamespacedName]*part{},
	}
	s.connections.open, s.renewals.of = map[place]*connection{}, map[place]*renewal{}
	s.connections.failed = func(of place, err error) {
		s.Log.Error(err, "closing a connection failed", "to", of.String())
	}
	return s
}

// Run takes part in budgets until ctx is done. Then it gives back what was not handed
// on, which takes a few seconds at most, and seals the local coordinator.
func (s *Set) Run(ctx context.Context) {
	again := time.NewTicker(followEvery)
	defer again.Stop()
	defer s.Certificates.of(s)()
	for {
		s.follow(ctx)
		s.renew(ctx)
		select {
		case <-ctx.Done():
			s.close()
			return
		case <-again.C:
		}
	}
}

// follow brings the parts in line with the budgets of the cluster.
func (s *Set) follow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	budgets, err := s.Source.FederatedBudgets(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.Log.Error(err, "budgets stay as they are; trying again")
		return
	}
	wanted := make(map[string]*policy.FederatedBudget, len(budgets))
	for i := range budgets {
		wanted[budgets[i].ID] = &budgets[i]
	}
	for id, p := range s.all() {
		if b := wanted[id]; b == nil || !p.goesOn(b) {
			s.drop(p)
		}
	}
	for id, b := range wanted {
		s.take(ctx, id, b)
	}
}

// all returns the parts by id.
func (s *Set) all() map[string]*part {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.parts)
}

// take goes on with a budget, or begins to take part in it. Only Run calls it, and
// drop.
func (s *Set) take(ctx context.Context, id string, b *policy.FederatedBudget) {
	s.mu.RLock()
	p := s.parts[id]
	s.mu.RUnlock()
	if p == nil {
		s.begin(ctx, b)
		return
	}
	before := p.name()
	s.connect(ctx, p, b)
	if p.differs(b) && s.workable(b) {
		p.adopt(*b)
	}
	if before != p.name() {
		s.rename(p, before)
	}
}

// begin takes part in another budget.
func (s *Set) begin(ctx context.Context, b *policy.FederatedBudget) {
	if !s.workable(b) {
		return
	}
	p := newPart(*b, s.Log)
	s.connect(ctx, p, b)
	p.begin(&s.Config, s.counts, s.changed)
	s.enter(p)
}

// workable reports whether an engine can work by b. If not, the part stays as it was.
func (s *Set) workable(b *policy.FederatedBudget) bool {
	err := engineConfig(b).Validate()
	if err != nil {
		s.Log.Error(err, "a budget cannot be worked by", "budget", nameOf(b).String())
	}
	return err == nil
}

// differs reports whether the part works by anything but b.
func (p *part) differs(b *policy.FederatedBudget) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !reflect.DeepEqual(p.budget, *b)
}

func (s *Set) enter(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[p.id] = p
	if p.first {
		s.names[p.name()] = p
	}
}

// rename files the part under the name of the object that counts now.
func (s *Set) rename(p *part, before types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[before] == p {
		delete(s.names, before)
	}
	if p.first {
		s.names[p.name()] = p
	}
}

// drop ends a part. It gives back what it has in the background.
func (s *Set) drop(p *part) {
	s.mu.Lock()
	delete(s.parts, p.id)
	if name := p.name(); s.names[name] == p {
		delete(s.names, name)
	}
	s.mu.Unlock()
	s.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		p.close(ctx)
		s.connections.release(p.ledger.Replace(nil, errClosed))
		if p.escrow != nil {
			s.connections.release(p.escrow.Replace(nil, errClosed))
		}
	})
}

// close ends every part, and then the local coordinator, which takes back what parts release.
func (s *Set) close() {
	for _, p := range s.all() {
		s.drop(p)
	}
	s.closing.Wait()
	s.connections.closing.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	s.Local.Seal(ctx)
}

// find returns the part of a FederatedBudget, nil when it has none.
func (s *Set) find(name types.NamespacedName) *part {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names[name]
}

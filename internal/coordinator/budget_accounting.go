package coordinator

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// sources map limits to the budgets that they draw from. The count of a budget is the sum
// over all its limits.
type sources struct {
	byPolicy map[types.NamespacedName]map[string]source // by name of the limit
	byBudget map[string]map[limitName]struct{}
	// ceased is when a limit last ceased to draw from a budget: some counts of windows that
	// may have begun before are no longer available.
	ceased map[string]time.Time
}

// A source is a budget that a limit draws from, and since when.
type source struct {
	budget string
	since  time.Time
}

func newSources() *sources {
	return &sources{
		byPolicy: map[types.NamespacedName]map[string]source{},
		byBudget: map[string]map[limitName]struct{}{},
		ceased:   map[string]time.Time{},
	}
}

// adopt takes over which of the policy's limits draw from budgets.
func (s *sources) adopt(p *policy.Policy, now time.Time) {
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	before := s.byPolicy[name]
	next := map[string]source{}
	for _, l := range p.Limits {
		if l.Budget == nil {
			continue
		}
		from, same := before[l.Name]
		if !same || from.budget != l.Budget.ID {
			from = source{budget: l.Budget.ID, since: now}
			s.link(from.budget, limitName{policy: name, limit: l.Name})
		}
		next[l.Name] = from
	}
	for limit, from := range before {
		if next[limit].budget != from.budget {
			s.unlink(from.budget, limitName{policy: name, limit: limit})
			s.ceased[from.budget] = now
		}
	}
	if delete(s.byPolicy, name); len(next) > 0 {
		s.byPolicy[name] = next
	}
}

// forget drops a policy that nobody enforced for long.
func (s *sources) forget(name types.NamespacedName) {
	for limit, from := range s.byPolicy[name] {
		s.unlink(from.budget, limitName{policy: name, limit: limit})
	}
	delete(s.byPolicy, name)
}

func (s *sources) link(id string, l limitName) {
	if s.byBudget[id] == nil {
		s.byBudget[id] = map[limitName]struct{}{}
	}
	s.byBudget[id][l] = struct{}{}
}

func (s *sources) unlink(id string, l limitName) {
	if delete(s.byBudget[id], l); len(s.byBudget[id]) == 0 {
		delete(s.byBudget, id)
	}
}

// sweep forgets what no window looks back on.
func (s *sources) sweep(now time.Time) {
	for id, at := range s.ceased {
		if now.Sub(at) > 2*time.Duration(limiter.MaxWindow)*time.Microsecond {
			delete(s.ceased, id)
		}
	}
}

// usage implements Usage.
func (b *books) usage(id string, w limiter.OpenWindow, before, over time.Time) ledger.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	began := before.Add(-time.Duration(w.Window) * time.Microsecond) // at the earliest
	out := ledger.Usage{Index: w.Index, Complete: began.After(b.since) && began.After(b.sources.ceased[id])}
	for name := range b.sources.byBudget[id] {
		counted := b.byName[name.policy].limits[name.limit].Usage(w, before, over, b.sources.byPolicy[name.policy][name.limit].since)
		out.Admitted += counted.Admitted
		out.Refused += counted.Refused
		out.Complete = out.Complete && counted.Complete
	}
	return out
}

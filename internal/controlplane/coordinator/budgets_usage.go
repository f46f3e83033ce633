package coordinator

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// boundLimits map limits to the budgets that they draw from. The count of a budget is the sum
// over all its limits.
type boundLimits struct {
	byPolicy map[types.NamespacedName]map[string]boundLimit // by name of the limit
	byBudget map[string]map[limitName]struct{}
	// ceased is when a limit last ceased to draw from a budget: some counts of windows that
	// may have begun before are no longer available.
	ceased map[string]time.Time
}

// A boundLimit is the budget that a limit draws from, and since when.
type boundLimit struct {
	budget string
	since  time.Time
}

func newBoundLimits() *boundLimits {
	return &boundLimits{
		byPolicy: map[types.NamespacedName]map[string]boundLimit{},
		byBudget: map[string]map[limitName]struct{}{},
		ceased:   map[string]time.Time{},
	}
}

// adopt takes over which of the policy's limits draw from budgets.
func (s *boundLimits) adopt(p *policy.Policy, now time.Time) {
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	before := s.byPolicy[name]
	next := map[string]boundLimit{}
	for _, l := range p.Limits {
		if l.Budget == nil {
			continue
		}
		from, same := before[l.Name]
		if !same || from.budget != l.Budget.ID {
			from = boundLimit{budget: l.Budget.ID, since: now}
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
func (s *boundLimits) forget(name types.NamespacedName) {
	for limit, from := range s.byPolicy[name] {
		s.unlink(from.budget, limitName{policy: name, limit: limit})
	}
	delete(s.byPolicy, name)
}

func (s *boundLimits) link(id string, l limitName) {
	if s.byBudget[id] == nil {
		s.byBudget[id] = map[limitName]struct{}{}
	}
	s.byBudget[id][l] = struct{}{}
}

func (s *boundLimits) unlink(id string, l limitName) {
	if delete(s.byBudget[id], l); len(s.byBudget[id]) == 0 {
		delete(s.byBudget, id)
	}
}

// sweep forgets what no window looks back on.
func (s *boundLimits) sweep(now time.Time) {
	for id, at := range s.ceased {
		if now.Sub(at) > 2*time.Duration(limiter.MaxWindow)*time.Microsecond {
			delete(s.ceased, id)
		}
	}
}

// usage is Usage of budget.Counts. A further rate of an object has the limits of the object, in windows
// of its own.
func (b *accounting) usage(id string, w limiter.OpenWindow, before, over time.Time) ledger.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	began := before.Add(-time.Duration(w.Window) * time.Microsecond) // at the earliest
	out := ledger.Usage{Index: w.Index, Complete: began.After(b.since) && began.After(b.boundLimits.ceased[policy.ObjectID(id)])}
	for name := range b.boundLimits.byBudget[policy.ObjectID(id)] {
		counted := b.byName[name.policy].limits[name.limit].Usage(w, before, over, b.boundLimits.byPolicy[name.policy][name.limit].since)
		out.Admitted += counted.Admitted
		out.Refused += counted.Refused
		out.Complete = out.Complete && counted.Complete
	}
	return out
}

// values is Values of budget.Counts.
func (b *accounting) values(id string, w limiter.OpenWindow, before, over time.Time, wanted []string) audit.ValueUsage {
	b.mu.Lock()
	defer b.mu.Unlock()
	began := before.Add(-time.Duration(w.Window) * time.Microsecond) // at the earliest
	out := audit.ValueUsage{Usage: audit.Usage{Complete: began.After(b.since) && began.After(b.boundLimits.ceased[policy.ObjectID(id)])}}
	for name := range b.boundLimits.byBudget[policy.ObjectID(id)] {
		limit := b.byName[name.policy].limits[name.limit]
		limit.Inquire(w, wanted)
		out.Add(limit.Values(w, before, over, b.boundLimits.byPolicy[name.policy][name.limit].since))
	}
	return out
}

package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Forgotten is a policy that a ledger had no room for. The earlier grants of its
// windows are not known, so they grant nothing more.
type Forgotten struct {
	Cluster, Namespace, Policy string
	Since                      limiter.Instant // windows that began before grant nothing
	Keys                       int             // counters that were left out
}

func (f Forgotten) owner() owner { return owner{f.Cluster, f.Namespace, f.Policy} }

// An owner is the policy to which counters belong.
type owner struct{ cluster, namespace, policy string }

func ownerOf(s store.Scope) owner { return owner{s.Cluster, s.Namespace, s.Policy} }

func (o owner) compare(p owner) int {
	return cmp.Or(cmp.Compare(o.cluster, p.cluster), cmp.Compare(o.namespace, p.namespace), cmp.Compare(o.policy, p.policy))
}

// forget takes over what a predecessor knew to be forgotten, as far as it matters:
// a window that began before may still be open, and the rest of the memory is older.
func (s *Store) forget(list []Forgotten, now limiter.Instant) {
	for _, f := range list {
		if f.Since.Add(limiter.MaxWindow) > now && f.Since > s.memory.Since {
			s.forgotten[f.owner()] = f
		}
	}
}

// id names the memory, which goes on with a ledger. The later of two that follow each
// other began later.
func (s *Store) id() limiter.MemoryID { return limiter.MemoryID(s.memory.Since) + 1 }

// Facts returns what the store says of itself.
func (s *Store) Facts() store.Facts {
	kept := store.Keeping{Guarantee: store.Guarantee{Grade: store.Hard}, Memories: []limiter.MemoryID{s.id()}}
	return store.Facts{Now: s.clock(), Volatile: kept, Durable: kept}
}

// memoryOf returns what the store remembers of the counters of a limit: all, when the
// limit was first put in force in this memory.
func (s *Store) memoryOf(scope store.Scope, kept limiter.Retention) limiter.Memory {
	m := s.memory
	if kept.IsBornIn(s.id()) {
		m.Since = 0
	}
	if f, ok := s.forgotten[ownerOf(scope)]; ok {
		m.Since = f.Since
	}
	m.Absences = s.absencesOf(scope)
	return m
}

// absencesOf returns when holders of the limit were not served here.
func (s *Store) absencesOf(scope store.Scope) []limiter.Absence {
	if s.absences == nil {
		return nil
	}
	return s.absences(scope)
}

// Forgotten returns the policies that predecessors had no room for, as far as that
// still matters, in order.
func (s *Store) Forgotten() []Forgotten {
	return slices.SortedFunc(maps.Values(s.forgotten), func(a, b Forgotten) int { return a.owner().compare(b.owner()) })
}

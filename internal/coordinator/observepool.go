package coordinator

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/audit/poolaudit"
)

// A PoolObservation is what the fleet says about one pool.
type PoolObservation struct {
	Term     uint64        // 0: this process does not lead, and knows nothing
	Sessions []PoolSession // that are served by the pool or enforce it; ordered by pod
	// Figures are nil while nobody was served by the pool in this term.
	Figures *poolaudit.Figures
}

// A PoolSession is a Session that has to do with a pool.
type PoolSession struct {
	Session
	// Report is what the sidecar said last, nil when it said nothing.
	Report *poolaudit.Report
}

// ObservePool returns what is known of a pool. It does not block on any sidecar.
func (c *Coordinator) ObservePool(namespace, name string) PoolObservation {
	t := c.present.Load()
	if t == nil {
		return PoolObservation{}
	}
	return t.observePool(types.NamespacedName{Namespace: namespace, Name: name})
}

func (t *term) observePool(name types.NamespacedName) PoolObservation {
	out := PoolObservation{Term: t.number, Figures: t.poolBooks.figures(name)}
	for _, s := range t.sessions.in(name.Namespace) {
		view, ok := s.observePool(name)
		if !ok {
			continue
		}
		if report, said := t.poolBooks.last(s.holder(), name); said {
			view.Report = &report
		}
		out.Sessions = append(out.Sessions, view)
	}
	return out
}

// observePool returns how the session stands to a pool, and false when it has nothing
// to do with it.
func (s *session) observePool(name types.NamespacedName) (PoolSession, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	view := s.view(s.acked.poolGeneration(name), rejectedOf(s.rejectedPools, name))
	return PoolSession{Session: view}, s.serves.hasPool(name) || s.acked.hasPool(name)
}

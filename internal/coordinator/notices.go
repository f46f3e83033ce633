package coordinator

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// notices passes names of policies, or of pools, on to one reader. Adding a name does not
// wait for the reader; names that wait are held once.
type notices struct {
	out  chan types.NamespacedName
	wake chan struct{}

	mu      sync.Mutex
	waiting map[types.NamespacedName]struct{}
}

func newNotices() *notices {
	return &notices{
		out:     make(chan types.NamespacedName),
		wake:    make(chan struct{}, 1),
		waiting: map[types.NamespacedName]struct{}{},
	}
}

func (n *notices) add(names ...types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range names {
		n.waiting[p] = struct{}{}
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run passes names on until ctx is done.
func (n *notices) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		for _, name := range n.take() {
			select {
			case <-ctx.Done():
				return
			case n.out <- name:
			}
		}
	}
}

func (n *notices) take() []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []types.NamespacedName
	for name := range n.waiting {
		out = append(out, name)
	}
	clear(n.waiting)
	return out
}

// notify announces that the session's standing to these policies, and to its pool, changed.
func (t *term) notify(s *session, policies []types.NamespacedName) {
	t.notices.add(policies...)
	if p := s.pool(); p != nil {
		t.poolNotices.add(p.name)
	}
}

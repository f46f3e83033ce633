package notices

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Notices pass names on to one reader. They are safe for concurrent use.
type Notices struct {
	out  chan types.NamespacedName
	wake chan struct{}

	mu     sync.Mutex
	recent gathering
	ready  map[types.NamespacedName]struct{} // to be passed on
}

// New returns notices that pass nothing on until Run.
func New() *Notices {
	return &Notices{
		out: make(chan types.NamespacedName), wake: make(chan struct{}, 1),
		recent: gathering{}, ready: map[types.NamespacedName]struct{}{},
	}
}

// Out returns the channel of the names, which is never closed. Names may be repeated.
func (n *Notices) Out() <-chan types.NamespacedName { return n.out }

// Add notes that the objects with these names changed. It does not wait for the reader.
func (n *Notices) Add(names ...types.NamespacedName) {
	if len(names) == 0 {
		return
	}
	now, wake := time.Now(), false
	n.mu.Lock()
	for _, name := range names {
		if n.recent.add(name, now) {
			n.ready[name], wake = struct{}{}, true
		}
	}
	n.mu.Unlock()
	if !wake {
		return
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Run passes names on until ctx is done. Those that were not passed on by then wait for the next Run.
func (n *Notices) Run(ctx context.Context) {
	look := time.NewTimer(quiet)
	defer look.Stop()
	for {
		names, more := n.take(time.Now()) // at first what was added before
		for i, name := range names {
			select {
			case <-ctx.Done():
				n.putBack(names[i:])
				return
			case n.out <- name:
			}
		}
		if more {
			look.Reset(quiet)
		}
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		case <-look.C:
		}
	}
}

// take returns the names to pass on now, and reports whether there may be others soon.
func (n *Notices) take(now time.Time) (names []types.NamespacedName, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.recent.due(now) {
		n.ready[name] = struct{}{}
	}
	for name := range n.ready {
		names = append(names, name)
	}
	clear(n.ready)
	return names, len(n.recent) > 0
}

// putBack has names be passed on by the next Run.
func (n *Notices) putBack(names []types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		n.ready[name] = struct{}{}
	}
}

package region

import (
	"sync"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/federation"
)

// A connection is an open place, in one version of its credentials.
type connection struct {
	place
	ledger Coordinator
	escrow federation.Escrow // nil where nothing can be kept
	hub    Hub               // nil where there is none
	audit  Auditor           // nil where values are not measured
	close  func() error      // nothing is called afterwards

	uses int // lines that it serves; guarded by connections.mu
	backend.Calls
}

// connections are the open places.
type connections struct {
	mu      sync.Mutex
	open    map[place]*connection
	closing sync.WaitGroup
	failed  func(of place, err error) // is called when a place could not be closed well
}

// known returns the connection to the place, counted as used once more, nil when there
// is none.
func (cs *connections) known(p place) *connection {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.open[p]
	if c != nil {
		c.uses++
	}
	return c
}

// hubs returns the connections to hubs, each counted as used once more.
func (cs *connections) hubs() []*connection {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var out []*connection
	for _, c := range cs.open {
		if c.hub != nil {
			c.uses++
			out = append(out, c)
		}
	}
	return out
}

// add enters a new connection, which is used once.
func (cs *connections) add(c *connection) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.uses = 1
	cs.open[c.place] = c
}

// release ends one use; nil has none. A connection without uses is closed in the background,
// once its last call has ended.
func (cs *connections) release(c *connection) {
	if c == nil {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.uses--; c.uses > 0 {
		return
	}
	delete(cs.open, c.place)
	cs.closing.Go(func() {
		c.Await()
		if err := c.close(); err != nil {
			cs.failed(c.place, err)
		}
	})
}

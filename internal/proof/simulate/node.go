package simulate

import (
	"math/rand/v2"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A node is where a holder runs: a clock, and a process that may crash.
type node struct {
	world  *world
	id     int
	clock  clock
	rng    *rand.Rand
	params limiter.Params // as the node knows them
	holder holder         // nil while the node is down

	admitted int64
}

// A holder is the process: what decides requests.
type holder interface {
	// request decides a request, by node.admit or node.refuse, now or later.
	request(cost int64)
	// configure gives the limit other parameters.
	configure(p limiter.Params)
	// crash ends the process. It decides nothing any more.
	crash()
}

// look has a holder that knows of clocks ask what the server's shows.
func (n *node) look() {
	if p, ok := n.holder.(*process); ok {
		p.look()
	}
}

func (n *node) now() int64 { return n.clock.at(n.world.now) }

// window returns the store's window by true time, which no real holder can know.
func (n *node) window() int64 {
	w := n.world
	return n.params.Rates[0].WindowAt(w.store.clock.micros(w.now)).Index
}

func (n *node) start() {
	if n.holder == nil {
		n.holder = n.world.Model.start(n)
	}
}

func (n *node) crash() {
	if n.holder != nil {
		n.holder.crash()
		n.holder = nil
	}
}

func (n *node) configure(p limiter.Params) {
	n.params = p
	if n.holder != nil {
		n.holder.configure(p)
	}
}

// request is one that comes in.
func (n *node) request(cost int64) {
	if n.holder == nil {
		return
	}
	w := n.world
	w.audit.offer(w.time(), cost)
	n.holder.request(cost)
}

func (n *node) admit(cost int64, of *limiter.Windows) {
	w := n.world
	n.admitted += cost
	w.audit.admit(w.time(), cost, of)
	w.trace.add(w.now, stepAdmit, n.id, cost)
}

func (n *node) refuse(cost int64) {
	n.world.audit.refused += cost
	n.world.trace.add(n.world.now, stepRefuse, n.id, cost)
}

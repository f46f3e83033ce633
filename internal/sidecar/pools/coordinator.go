package pools

import (
	"context"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
)

// Coordinators opens the coordinators of pools. Retain closes those not named.
type Coordinators interface {
	Coordinator(s policy.Store) (concurrency.Coordinator, error)
	Retain(used map[policy.Store]bool)
}

// numbersOfAGuard is how many commands a guard may send: ten a second for half a century.
// A holder may have a quarter of a million guards until numbers are used up.
const numbersOfAGuard = 1 << 34

// A numbered coordinator is that of one guard, over the connections that lead to it now. The
// guard counts its commands from 1. Those of a holder's next guard are numbered above all that
// the one before can send. Otherwise a coordinator that missed its leave would take them for
// old ones, and a leave that comes late would give up the share of the next.
type numbered struct {
	after int64 // the numbers of the guards before
	over  atomic.Pointer[concurrency.Coordinator]
}

// number returns c for a guard of a holder that had that many before.
func number(c concurrency.Coordinator, guards int64) *numbered {
	n := &numbered{after: guards * numbersOfAGuard}
	n.reach(c)
	return n
}

// reach makes c the way to the coordinator from now on.
func (n *numbered) reach(c concurrency.Coordinator) { n.over.Store(&c) }

// Apply implements concurrency.Coordinator.
func (n *numbered) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	c.Seq += n.after
	g, err := (*n.over.Load()).Apply(ctx, key, p, c)
	g.Seq -= n.after
	return g, err
}

package simulate

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// rules are production code that a test may weaken.
type rules struct {
	floor  func(r store.Reading, sent int64) limiter.Instant // that a holder sends along
	start  func(wall, floor limiter.Instant) limiter.Instant // of a leader's clock
	covers func(r leadership.Renewal, at limiter.Instant, sinceBoot, hold time.Duration) bool
	forgot func(r store.Recollection, begun limiter.Instant) limiter.Instant
}

func production() rules {
	return rules{
		floor: store.Reading.At, start: memory.StartOf, covers: leadership.Renewal.Covers, forgot: store.Recollection.Forgot,
	}
}

// controllers keep the counters: the one that leads does.
type controllers struct {
	world *world
	rng   *rand.Rand
	all   []*controller
	// hold is how long a renewal counts, wait how long others wait from when they saw it,
	// and retry how often each tries.
	hold, wait, retry time.Duration

	// The state of the API server.
	lease  lease
	writes int     // of the Lease that were accepted
	terms  uint64  // that began
	left   *legacy // by the last one; nil when it did not end in order

	identities int // of processes
}

// A lease is the Lease of leader election.
type lease struct {
	version int // 0: there is none
	holder  int // 0: it was released
	note    leadership.Note
}

// A legacy is what a term that ends in order leaves.
type legacy struct {
	stopped limiter.Instant
	ledger  []byte
}

func newControllers(w *world, n int) *controllers {
	window := time.Duration(w.Params.Rates[0].Window) * time.Microsecond
	cs := &controllers{
		world: w, rng: rand.New(rand.NewPCG(w.Seed, ofControllers)),
		hold: window * 3 / 2, wait: 2 * window, retry: window / 8,
	}
	for range n {
		c := &controller{of: cs, clock: w.clock()}
		cs.all = append(cs.all, c)
		c.begin()
	}
	return cs
}

// delay returns how long a message to the API server takes, one way.
func (cs *controllers) delay() time.Duration { return time.Duration(cs.rng.Int64N(int64(cs.retry))) }

// key is that of the limit.
var key = store.Key{Scope: store.Scope{Cluster: "c", Namespace: "ns", Policy: "p", Limit: "l"}}

// apply implements keeper. A holder reaches any controller that believes to lead, but none whose term
// is before one that it heard of.
func (cs *controllers) apply(m message) (answer, bool) {
	leaders := slices.Clone(cs.all)
	leaders = slices.DeleteFunc(leaders, func(c *controller) bool { return c.store == nil || c.term < m.term })
	if len(leaders) == 0 {
		return answer{}, false
	}
	c := leaders[cs.rng.IntN(len(leaders))]
	res, err := c.store.Apply(context.Background(), key, m.params, m.command)
	if err != nil || !c.covers(res.Now) {
		return answer{}, false // it is granted, and never arrives
	}
	return answer{Result: res, term: c.term}, true
}

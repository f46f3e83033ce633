package pooltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// testParallel lets 200 holders use what they are granted, and counts at every
// instant what all of them have in flight.
func testParallel(t *testing.T, h *harness) {
	const holders, limit = 200, 50
	first := h.open(t, fixed(limit), "first")
	first.leave(t) // it has all of the limit, and might run last
	var backend backend
	var all sync.WaitGroup
	for i := range holders {
		all.Go(func() {
			if err := backend.serve(t.Context(), first.with(fmt.Sprint("h", i)), uint64(i)); err != nil {
				t.Errorf("Apply: %v", err)
			}
		})
	}
	all.Wait()
	if got := backend.most.Load(); got > limit || got < limit/2 {
		t.Errorf("up to %d were in flight at once, want nearly %d and no more", got, limit)
	}
}

// A backend counts what it is asked to do at once.
type backend struct{ inFlight, most atomic.Int64 }

// serve does the work of one holder: at each of 20 beats as much as its share allows,
// and some of that ends before the next.
func (b *backend) serve(ctx context.Context, m *member, seed uint64) error {
	dice := rand.New(rand.NewPCG(seed, 3))
	for range 20 {
		g, err := m.h.Coordinator.Apply(ctx, m.key, m.params, m.command(pool.Beat))
		if err != nil {
			return err
		}
		m.Grant = g
		for m.inFlight < g.Share {
			b.begin(m)
		}
		b.end(m, dice.Int64N(m.inFlight+1))
	}
	b.end(m, m.inFlight)
	_, err := m.h.Coordinator.Apply(ctx, m.key, m.params, m.command(pool.Leave))
	return err
}

func (b *backend) begin(m *member) {
	m.inFlight++
	sum := b.inFlight.Add(1)
	for was := b.most.Load(); was < sum && !b.most.CompareAndSwap(was, sum); was = b.most.Load() {
	}
}

func (b *backend) end(m *member, requests int64) {
	m.inFlight -= requests
	b.inFlight.Add(-requests)
}

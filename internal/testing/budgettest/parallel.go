package budgettest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// testParallel lets 32 holders lease, use and give back at once, and counts what they
// used.
func testParallel(t *testing.T, h *harness) {
	const holders, limit = 32, 500
	first := h.open(t, h.firstCome(limit))
	var used atomic.Int64
	var all sync.WaitGroup
	for i := range int64(holders) {
		m := first.with(first.params.Members[i%2].Name, fmt.Sprint("h", i))
		all.Go(func() {
			n, err := m.use(t.Context(), rand.New(rand.NewPCG(uint64(i), 5)))
			used.Add(n)
			if err != nil {
				t.Errorf("Apply: %v", err)
			}
		})
	}
	all.Wait()
	for first.lease(t, 1, limit).Reason == ledger.Granted {
	}
	if got := used.Load() + first.granted; got != limit || used.Load() < limit/2 {
		t.Errorf("%d units were used and %d were left, want %d together", used.Load(), first.granted, limit)
	}
}

// use does the work of one holder: it uses a part of what it was granted, and gives
// back the rest before it ends. It returns what it used.
func (m *holder) use(ctx context.Context, dice *rand.Rand) (used int64, err error) {
	for range 20 {
		c := m.asking(1, 1+dice.Int64N(20))
		if dice.IntN(4) == 0 {
			m.granted = used + dice.Int64N(m.granted-used+1)
			c = m.next(ledger.Release)
		}
		if err := m.persist(ctx, c); err != nil {
			return used, err
		}
		if m.granted < used {
			return used, fmt.Errorf("%s has %d units and used %d already", m.name, m.granted, used)
		}
		used += dice.Int64N(m.granted - used + 1)
	}
	m.granted = used
	return used, m.persist(ctx, m.next(ledger.Release))
}

// persist sends a command until it is answered: the machine may be too busy to do that
// in time for all.
func (m *holder) persist(ctx context.Context, c ledger.Command) error {
	for {
		g, err := m.h.Coordinator.Apply(ctx, m.id, m.params, c)
		if err == nil {
			m.take(g)
			return nil
		}
		if unavailable := (*store.UnavailableError)(nil); !errors.As(err, &unavailable) || ctx.Err() != nil {
			return err
		}
	}
}

package escrowtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// testParallel lets 200 processes share one escrow. Some bring more than was granted
// before. All of it is taken, and no more.
func testParallel(t *testing.T, h *harness) {
	const processes, limit = 200, 2000
	r := h.region(t)
	r.answered(epoch(5, 1), limit/2)
	var taken atomic.Int64
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(i), 9))
			if err := work(t.Context(), h.Escrow, r.id, dice, &taken, limit); err != nil {
				t.Errorf("Apply: %v", err)
			}
		})
	}
	all.Wait()
	rest := r.answered(epoch(5, 1), limit).Remaining
	if sum := taken.Load() + rest; sum != limit {
		t.Errorf("%d were taken and %d are left, of %d", taken.Load(), rest, limit)
	}
}

// work does 10 rounds of what a process does.
func work(ctx context.Context, e Escrow, id string, dice *rand.Rand, taken *atomic.Int64, limit int64) error {
	for range 10 {
		got, err := e.Apply(ctx, id, take(1+dice.Int64N(8)))
		if err != nil {
			return err
		}
		taken.Add(got.Granted)
		if got.Granted > 1 && dice.IntN(4) == 0 {
			back, err := e.Apply(ctx, id, escrow.Command{Op: escrow.Return, Want: 1, Epoch: got.Epoch})
			if err != nil {
				return err
			}
			taken.Add(-back.Granted)
		}
		if dice.IntN(8) > 0 {
			continue
		}
		asked, err := e.Apply(ctx, id, escrow.Command{Op: escrow.Ask, Holder: fmt.Sprint(dice.Int())})
		if err != nil {
			return err
		}
		if _, err := e.Apply(ctx, id, escrow.Command{
			Op: escrow.Fill, Holder: asked.Holder, At: asked.Now, ExpiresIn: long,
			Grant: ledger.Grant{Reason: ledger.Granted, Seq: asked.Seq, Epoch: epoch(5, 1), Granted: min(limit, asked.Told+20)},
		}); err != nil {
			return err
		}
	}
	return nil
}

func take(want int64) escrow.Command { return escrow.Command{Op: escrow.Take, Min: 1, Want: want} }

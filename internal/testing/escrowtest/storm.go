package escrowtest

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Settings of a storm.
const (
	stormProcesses = 6
	stormLimit     = 300
	stormSlice     = 40
	stormWindow    = 100 * limiter.Millisecond
	stormMargin    = limiter.Millisecond // of the processes' clocks
	// stormPatience is how long a loss may keep the region from using the limit.
	stormPatience = 30 * time.Second
)

// Storm lets the processes of a region share an escrow while losses happen, one after
// another. It adds up by itself what they took of every window, and fails when that
// exceeded the limit, or when they do not come to use it again after a loss.
func Storm(t *testing.T, e Escrow, losses []func()) {
	t.Helper()
	s := &storm{t: t, e: e, hub: NewCoordinator(stormLimit, stormWindow, 1), taken: map[int64]int64{}}
	s.hub.Slice(stormSlice)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range uint64(stormProcesses) {
		all.Go(func() { s.process(ctx, rand.New(rand.NewPCG(i, 8))) })
	}
	for _, loss := range losses {
		s.awaitBusy()
		loss()
	}
	s.awaitBusy()
	stop()
	all.Wait()
	for index, units := range s.taken {
		if units > stormLimit {
			t.Errorf("%d were taken of window %d, of %d", units, index, stormLimit)
		}
	}
}

type storm struct {
	t *testing.T
	e Escrow

	mu    sync.Mutex // guards all below
	hub   *Coordinator
	taken map[int64]int64 // of each window
}

func wall() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }

// awaitBusy waits until the processes have taken most of a window that begins later.
func (s *storm) awaitBusy() {
	s.t.Helper()
	first := int64(wall())/int64(stormWindow) + 1
	busy := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for index, units := range s.taken {
			if index >= first && units > stormLimit*3/4 {
				return true
			}
		}
		return false
	}
	for deadline := time.Now().Add(stormPatience); !busy(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Error("the limit is not used")
			return
		}
	}
}

func (s *storm) process(ctx context.Context, dice *rand.Rand) {
	for ctx.Err() == nil {
		if err := s.round(ctx, dice); err != nil && ctx.Err() == nil {
			if unavailable := (*store.UnavailableError)(nil); !errors.As(err, &unavailable) {
				s.t.Error(err)
				return
			}
			<-time.After(time.Millisecond)
		}
	}
}

// round takes some units, or else opens the window or asks for more.
func (s *storm) round(ctx context.Context, dice *rand.Rand) error {
	sent := wall()
	r, err := s.apply(ctx, take(1+dice.Int64N(9)))
	switch {
	case err != nil:
		return err
	case r.Granted > 0:
		return s.spend(ctx, dice, sent, r)
	case r.Epoch.Index == 0 && dice.IntN(2) == 0:
		return s.open(ctx, r)
	case dice.IntN(16) == 0:
		return s.ask(ctx, escrow.Release, dice)
	default:
		return s.ask(ctx, escrow.Ask, dice)
	}
}

func (s *storm) apply(ctx context.Context, c escrow.Command) (escrow.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.e.Apply(ctx, "storm", c)
}

// spend counts what was taken, and maybe gives some of it back.
func (s *storm) spend(ctx context.Context, dice *rand.Rand, sent limiter.Instant, r escrow.Result) error {
	s.count(r.Epoch.Index, r.Granted)
	if end := s.hub.End(r.Epoch.Index); sent.Add(r.ExpiresIn) > end {
		return fmt.Errorf("units of a window that ends at %d are handed on for %d at %d", end, r.ExpiresIn, sent)
	}
	if dice.IntN(8) > 0 {
		return nil
	}
	r, err := s.apply(ctx, escrow.Command{Op: escrow.Return, Want: 1, Epoch: r.Epoch})
	if err != nil {
		return err
	}
	s.count(r.Epoch.Index, -r.Granted)
	return nil
}

func (s *storm) count(index, units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[index] += units
}

// open opens the window that the wall's clock, which is the coordinator's, shows.
func (s *storm) open(ctx context.Context, r escrow.Result) error {
	now := wall()
	index := int64(now) / int64(stormWindow)
	_, err := s.apply(ctx, escrow.Command{
		Op: escrow.Open, Epoch: ledger.Epoch{Index: index}, Slice: stormSlice, At: r.Now,
		ExpiresIn: s.hub.End(index).Sub(now) - stormMargin, Age: now.Sub(s.hub.End(index - 1)),
	})
	return err
}

// ask lets the escrow prepare a command and brings back what is answered.
func (s *storm) ask(ctx context.Context, op escrow.Op, dice *rand.Rand) error {
	asked, err := s.apply(ctx, escrow.Command{Op: op, Holder: crand.Text()})
	if err != nil {
		return err
	}
	c := ledger.Command{
		Op: ledger.Lease, Member: Member(0), Holder: asked.Holder, Seq: asked.Seq, Epoch: asked.From, Granted: asked.Told,
		Slice: asked.Slice, Min: 1, Want: 1 + dice.Int64N(60),
	}
	if op == escrow.Release {
		c.Op, c.Min, c.Want = ledger.Release, 0, 0
	}
	s.mu.Lock()
	g := s.hub.Apply(wall(), c)
	s.mu.Unlock()
	_, err = s.apply(ctx, escrow.Command{
		Op: escrow.Fill, Holder: asked.Holder, At: asked.Now, Grant: g, ExpiresIn: g.ExpiresIn - stormMargin,
	})
	return err
}

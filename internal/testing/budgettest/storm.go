package budgettest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Settings of a storm.
const (
	stormHolders = 8
	stormLimit   = 200
	stormWindow  = limiter.Second
	// stormPatience is how long a loss may keep the fleet from being granted anything.
	stormPatience = 60 * time.Second
)

// Storm lets a fleet lease while losses happen, one after another, by a clock that
// runs. It adds up by itself what was granted of each window, in all memories together,
// and fails when that exceeded the limit, or when the fleet is not granted much of a
// window again after a loss.
func Storm(t *testing.T, s Subject, losses []func()) {
	t.Helper()
	h := &harness{s}
	p := h.firstCome(stormLimit)
	p.Window = stormWindow
	ctx, stop := context.WithCancel(t.Context())
	sum := totals{of: map[int64]int64{}}
	var all sync.WaitGroup
	for i := range stormHolders {
		m := holder{h: h, id: t.Name(), params: p, member: p.Members[i%2].Name, name: fmt.Sprint("h", i)}
		all.Go(func() { m.sail(ctx, t, &sum) })
	}
	for _, loss := range losses {
		sum.awaitBusy(t)
		loss()
	}
	sum.awaitBusy(t)
	stop()
	all.Wait()
	for index, granted := range sum.of {
		if granted > stormLimit {
			t.Errorf("of window %d %d units were granted, want at most %d", index, granted, stormLimit)
		}
	}
}

// sail leases until ctx is done, and never gives anything back.
func (m *holder) sail(ctx context.Context, t *testing.T, sum *totals) {
	for ; ctx.Err() == nil; <-time.After(rand.N(10 * time.Millisecond)) {
		call, cancel := context.WithTimeout(ctx, time.Second)
		g, err := m.h.Coordinator.Apply(call, m.id, m.params, m.asking(1, 1+rand.Int64N(stormLimit/4)))
		cancel()
		switch unavailable := (*store.UnavailableError)(nil); {
		case errors.As(err, &unavailable):
			continue
		case err != nil:
			t.Errorf("Apply: %v", err)
			return
		}
		if g.Epoch == m.epoch {
			sum.add(g.Epoch.Index, g.Granted-m.granted)
		} else { // what another memory granted of the same window stays
			sum.add(g.Epoch.Index, g.Granted)
		}
		m.take(g)
	}
}

// totals are what was granted of each window.
type totals struct {
	mu   sync.Mutex
	of   map[int64]int64 // guarded by mu
	busy atomic.Int64    // windows that had half granted
}

func (s *totals) add(index, units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.of[index]
	s.of[index] += units
	if was < stormLimit/2 && s.of[index] >= stormLimit/2 {
		s.busy.Add(1)
	}
}

// awaitBusy waits until half of another window is granted.
func (s *totals) awaitBusy(t *testing.T) {
	t.Helper()
	before := s.busy.Load()
	for deadline := time.Now().Add(stormPatience); s.busy.Load() == before; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("of no window half is granted")
			return
		}
	}
}

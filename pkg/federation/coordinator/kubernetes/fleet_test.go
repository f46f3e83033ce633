package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

const id = "acme/checkout"

// params describe a budget whose units go to any member that asks.
func params(limit, block int64) ledger.Params {
	return ledger.Params{
		Limit: limit, Window: limiter.Second, Strategy: ledger.FirstCome, Block: block,
		Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}, {Name: "b", Weight: 1, Borrowing: -1}},
	}
}

var errCrashed = errors.New("the process is gone")

// A process is one controller. Its journal calls can be made to be its last.
type process struct {
	*kubernetes.Coordinator
	journal *journal

	mu   sync.Mutex
	dead bool
	left int  // journal calls until it crashes
	late bool // it crashes after the write instead of before
}

// start returns a process that crashes at the journal call of that number.
func start(j *journal, now *suite.Clock, left int, late bool) *process {
	p := &process{journal: j, left: left, late: late}
	p.Coordinator = kubernetes.New(kubernetes.Options{Journal: p, Births: p, Clock: now.Now})
	return p
}

// due reports whether the process crashes at this call, and whether it is gone.
func (p *process) due() (now, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left--
	now, gone = p.left == 0 && !p.dead, p.dead
	p.dead = p.dead || now
	return now, gone
}

func (p *process) Load(ctx context.Context, id string) (kubernetes.Record, string, error) {
	if now, gone := p.due(); now || gone {
		return kubernetes.Record{}, "", errCrashed
	}
	return p.journal.Load(ctx, id)
}

func (p *process) Save(ctx context.Context, id string, r kubernetes.Record, version string) (string, error) {
	now, gone := p.due()
	switch {
	case gone, now && !p.late:
		return "", errCrashed
	case now:
		_, _ = p.journal.Save(ctx, id, r, version)
		return "", errCrashed
	}
	return p.journal.Save(ctx, id, r, version)
}

func (p *process) Known(ctx context.Context, id string, window limiter.Micros) (bool, error) {
	if now, gone := p.due(); now || gone {
		return false, errCrashed
	}
	return p.journal.Known(ctx, id, window)
}

func (p *process) Enter(ctx context.Context, id string, window limiter.Micros) error {
	if now, gone := p.due(); now || gone {
		return errCrashed
	}
	return p.journal.Enter(ctx, id, window)
}

// A holder leases and adds up what it was granted of each window, in all memories.
type holder struct {
	name, member string
	seq          int64
	last         ledger.Grant
	granted      map[ledger.Epoch]int64
}

func newHolder(i int) *holder {
	return &holder{name: fmt.Sprint("h", i), member: []string{"a", "b"}[i%2], granted: map[ledger.Epoch]int64{}}
}

// lease asks once. An error that is not for want of the coordinator is a defect.
func (h *holder) lease(ctx context.Context, c *kubernetes.Coordinator, p ledger.Params, least, want int64) (ledger.Grant, error) {
	h.seq++
	g, err := c.Apply(ctx, id, p, ledger.Command{
		Op: ledger.Lease, Member: h.member, Holder: h.name, Seq: h.seq,
		Epoch: h.last.Epoch, Granted: h.last.Granted, Min: least, Want: want, Slice: h.last.Slice,
	})
	if err != nil {
		if unavailable := (*store.UnavailableError)(nil); !errors.As(err, &unavailable) {
			panic(err)
		}
		return g, err
	}
	if g.Epoch != (ledger.Epoch{}) {
		h.last = g
		h.granted[g.Epoch] = max(h.granted[g.Epoch], g.Granted)
	}
	return g, nil
}

// granted adds up what all were granted of each window.
func granted(holders []*holder) map[int64]int64 {
	sums := map[int64]int64{}
	for _, h := range holders {
		for epoch, units := range h.granted {
			sums[epoch.Index] += units
		}
	}
	return sums
}

// requireWithin checks that no window was granted beyond its limit.
func requireWithin(t *testing.T, holders []*holder, limit int64) {
	t.Helper()
	for index, units := range granted(holders) {
		if units > limit {
			t.Fatalf("of window %d %d units were granted, at most %d may be", index, units, limit)
		}
	}
}

// seeded returns dice and prints what they were begun with when the test fails.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

package federation

import (
	"context"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/sizing"
)

// A Region uses one member's part of one budget in one process. Its methods may be
// called concurrently. It has to be closed.
type Region struct {
	coordinator Coordinator
	escrow      Escrow // that was given, nil for none
	clock       *monotonic.Clock

	ctx     context.Context //nolint:containedctx // of commands, which belong to no request
	cancel  context.CancelFunc
	woken   chan struct{}
	stop    chan struct{} // ends the loop
	unwatch func()
	work    sync.WaitGroup // the loop, and the command under way

	mu     sync.Mutex // guards the rest
	config Config
	rule   sizing.Rule
	main   *vault // of the given escrow, or in memory without one
	spare  *vault // in memory, while the given escrow is away; nil when it is not needed
	link   link
	access outage // of the given escrow
	need   *need
	demand demand
	split  split
	// looking is how many look what the last order brought.
	looking int
	busy    bool  // a command is under way
	opening bool  // a window is being begun with the slice
	timed   int64 // when the loop wakes up
	closed  bool
	counts  counts
}

// New returns a region that asks c for units and keeps them in e; e is nil when the
// process shares them with no other. The configuration has to be valid.
func New(cfg Config, c Coordinator, e Escrow) *Region {
	cfg = cfg.normalize()
	now := cfg.Clock.Now()
	r := &Region{
		coordinator: c, escrow: e, clock: cfg.Clock,
		woken: make(chan struct{}, 1), stop: make(chan struct{}),
		config: cfg, rule: ruleOf(&cfg), main: newVault(e, &cfg),
		link: newLink(now), need: newNeed(), split: split{}, timed: now,
	}
	r.link.promised = cfg.self().Kept // until the escrow says it
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.unwatch = r.clock.Watch(r.wake)
	r.work.Go(r.run)
	return r
}

// run does what is due until the region is closed.
func (r *Region) run() {
	timer := time.NewTimer(r.turn())
	defer timer.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-r.woken:
		case <-timer.C:
		}
		timer.Reset(r.turn())
	}
}

// Reconfigure goes on under another valid configuration of the same budget and member.
// With windows of another length it begins again: what is left in the escrow dies with
// its window.
func (r *Region) Reconfigure(cfg Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cfg.ID, cfg.Member, cfg.Clock = r.config.ID, r.config.Member, r.clock
	cfg = cfg.normalize()
	again := cfg.Params.Window != r.config.Params.Window
	r.config, r.rule = cfg, ruleOf(&cfg)
	now := r.clock.Now()
	if again {
		r.main, r.spare = newVault(r.escrow, &cfg), nil
		r.link.begin(now)
		r.demand, r.split = demand{}, split{}
	}
	r.hurry(now)
}

// Close refuses requests from now on and gives back what was not taken, if that is
// possible before ctx is done. Close once.
func (r *Region) Close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.settle()
	r.mu.Unlock()
	close(r.stop)
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	r.work.Wait()
	for _, v := range r.leftover() {
		r.exchange(r.ctx, order{op: escrow.Release, vault: v})
	}
	r.cancel()
	r.unwatch()
}

// leftover returns the escrows that have something to give back, if anybody can hear it.
func (r *Region) leftover() (vaults []*vault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	for _, v := range []*vault{r.main, r.spare} {
		if v != nil && r.link.cause == nil && v.seen.remaining > 0 && v.seen.open(now) {
			vaults = append(vaults, v)
		}
	}
	return vaults
}

// wake makes the loop look at what is due.
func (r *Region) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// vault returns the escrow that is worked with.
func (r *Region) vault() *vault {
	if r.spare != nil && r.access.cause != nil {
		return r.spare
	}
	return r.main
}

// deadline returns the instant from which on nothing of the vault's window is handed
// on: when its lifetime may be over by the escrow's clock or by the coordinator's.
func (r *Region) deadline(v *vault) int64 { return r.bounded(v.seen.epoch, v.seen.deadline) }

func (r *Region) bounded(e ledger.Epoch, deadline int64) int64 {
	if r.link.estimate.known {
		deadline = min(deadline, r.link.estimate.perhaps(r.end(e.Index)))
	}
	return deadline
}

package concurrency

import (
	"context"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// A Guard keeps one pool in one process. Its methods may be called concurrently. It has
// to be closed.
type Guard struct {
	coordinator Coordinator
	clock       *monotonic.Clock
	start       int64           // instant when the guard was made,
	began       limiter.Instant // and what time it was then

	ctx     context.Context //nolint:containedctx // of the beats, which belong to no request
	cancel  context.CancelFunc
	woken   chan struct{}
	stop    chan struct{} // ends the loop
	unwatch func()
	work    sync.WaitGroup // the loop, and beats under way

	mu      sync.Mutex // guards the rest
	config  Config
	table   *slots.Table
	keys    *slots.Keys // nil: the limit is of all requests
	bounded bounded     // the one of the two that the share bounds
	law     *adaptive.Limit
	share   share
	link    link
	eager   eagerness
	waiters map[slots.Ticket]*waiter
	epoch   *epoch
	timed   int64 // when the loop wakes up
	closed  bool
	drained chan struct{} // closed when nothing is in flight after closed; then nil

	admitted, fences, aborted int64
	refused                   refusals
	worst                     Worst
}

// New returns a guard that asks c for its share, and starts to. The configuration has
// to be valid.
func New(cfg Config, c Coordinator) *Guard { return newGuard(cfg, c, monotonic.Process) }

func newGuard(cfg Config, c Coordinator, clock *monotonic.Clock) *Guard {
	now := clock.Now()
	g := &Guard{
		coordinator: c, clock: clock,
		start: now, began: limiter.Instant(time.Now().UnixMicro()),
		woken: make(chan struct{}, 1), stop: make(chan struct{}), drained: make(chan struct{}),
		config: cfg, table: slots.New(cfg.Slots), law: adaptive.New(cfg.Law),
		link:    link{sent: now - int64(cfg.Heartbeat.Interval), free: past},
		waiters: map[slots.Ticket]*waiter{}, timed: now,
		refused: newRefusals(cfg.Slots),
	}
	g.epoch = &epoch{g, make(chan struct{})}
	g.bounded = g.table
	if cfg.PerKey {
		g.keys = slots.NewKeys()
		g.bounded = g.keys
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.unwatch = clock.Watch(g.wake)
	g.work.Go(g.run)
	return g
}

// run does what is due until the guard stops.
func (g *Guard) run() {
	timer := time.NewTimer(g.turn())
	defer timer.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-g.woken:
		case <-timer.C:
		}
		timer.Reset(g.turn())
	}
}

// freed goes on after a slot was given back.
func (g *Guard) freed(now int64) {
	g.pass(now)
	if g.closed && g.drained != nil && g.table.InFlight() == 0 {
		close(g.drained)
		g.drained = nil
	}
	if g.eager.reserved > g.share.units {
		g.hurry(now)
	}
}

// starve notes that a request found no slot. If that is because of the share, a larger
// one is worth a beat.
func (g *Guard) starve(now int64) {
	if g.eager.starved || !g.share.live || g.share.units > g.law.Limit() {
		return
	}
	g.eager.starved = true
	g.hurry(now)
}

// Reconfigure goes on under another valid configuration of the same pool and holder.
// Requests in flight and requests that wait stay.
func (g *Guard) Reconfigure(cfg Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.link.changed = g.link.changed || cfg.Params != g.config.Params
	g.refused = g.refused.under(g.config.Slots, cfg.Slots)
	g.config = cfg
	g.table.Reconfigure(cfg.Slots)
	g.law.Reconfigure(cfg.Law)
	g.pass(now)
	g.hurry(now)
}

// Close refuses requests from now on and waits until nothing is in flight. Then it
// gives the share up. When ctx is done first, the share is not given up, since it is in
// use: it expires. Nobody will know when, so what is in flight is asked to end now if it
// were then. Close once.
func (g *Guard) Close(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	g.flush()
	drained := g.drained
	g.freed(g.clock.Now())
	g.mu.Unlock()

	stop := context.AfterFunc(ctx, g.cancel)
	defer stop()
	select {
	case <-drained:
	case <-ctx.Done():
		g.mu.Lock()
		g.abort()
		g.mu.Unlock()
	}
	close(g.stop)
	g.work.Wait()
	g.leave()
	g.cancel()
	g.unwatch()
}

// leave gives the share up, unless something uses it. If that gets lost, it expires.
func (g *Guard) leave() {
	g.mu.Lock()
	if g.table.InFlight() > 0 {
		g.mu.Unlock()
		return
	}
	b := g.command(pool.Leave, g.clock.Now())
	key, interval := g.config.Key, g.config.Heartbeat.Interval
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(g.ctx, interval)
	defer cancel()
	_, _ = g.coordinator.Apply(ctx, key, b.params, b.Command)
}

// instant returns the time of day at an instant of the guard's clock, by how late it was
// when the guard was made. It never goes back.
func (g *Guard) instant(now int64) limiter.Instant {
	return g.began.Add(micros(time.Duration(now - g.start)))
}

// nanos is the inverse of instant.
func (g *Guard) nanos(at limiter.Instant) int64 {
	return g.start + int64(duration(at.Sub(g.began)))
}

package failuremodes_test

import (
	"context"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// A region is the controllers of one member, and their way to the coordinator.
type region struct {
	w      *world
	number int
	line   *line
	escrow federation.Escrow // that they share; nil when each keeps its own

	mu        sync.Mutex
	processes []*process // guarded by mu; nil for one that is dead
}

// A process is one controller.
type process struct {
	*federation.Region
	clock *monotonic.Clock
}

func newRegion(w *world, number int, to federation.Coordinator) *region {
	r := &region{w: w, number: number, line: newLine(w, to)}
	if w.setup.escrow != nil {
		r.escrow = w.setup.escrow(w)
	}
	r.processes = make([]*process, w.setup.processes)
	for i := range r.processes {
		r.start(i)
	}
	return r
}

// start starts a controller that knows nothing.
func (r *region) start(i int) {
	s := &r.w.setup
	p := &process{clock: new(monotonic.Clock)}
	cfg := federation.Config{
		ID: id, Member: r.w.params.Members[r.number].Name, Params: r.w.params,
		Outage: s.outage, Timeout: s.timeout, Patience: patience, Clock: p.clock,
	}
	cfg.Params.Block = 0
	if err := cfg.Validate(); err != nil {
		r.w.t.Fatal(err)
	}
	p.Region = federation.New(cfg, r.line, r.escrow)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes[i] = p
}

// get returns a controller that lives.
func (r *region) get(i int) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes[i]
}

// kill ends a controller without a word to anybody.
func (r *region) kill(i int) {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	r.shut(dead, i)
}

// shut ends a controller, that gives back what it has until ctx is done.
func (r *region) shut(ctx context.Context, i int) {
	r.mu.Lock()
	p := r.processes[i]
	r.processes[i] = nil
	r.mu.Unlock()
	if p != nil {
		p.Close(ctx)
	}
}

// load asks the controllers in turn, whether they answer or not.
func (r *region) load(ctx context.Context) {
	if r.w.setup.load == idle {
		return
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	each := r.w.setup.load * int64(tick) / int64(time.Second)
	var asks sync.WaitGroup
	defer asks.Wait()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p := r.get(i % len(r.processes)); p != nil {
			asks.Go(func() { r.w.ask(ctx, r.number, p.Region, each) })
		} else {
			r.w.note(ask{at: r.w.at(), region: r.number, wanted: each})
		}
	}
}

// skip moves the clock of a region's machine on, as after a suspension.
func (r *region) skip(d limiter.Micros) {
	for i := range r.processes {
		r.get(i).clock.Skip(time.Duration(d) * time.Microsecond)
	}
}

package quality

import (
	"context"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A fleet is the processes in front of the backend.
type fleet interface {
	// acquire asks process i to forward a request. The function ends the request, and
	// is nil when it is refused.
	acquire(i int) (release func())
	// exceeded returns how many more were in flight than the fleet may have, at most. It
	// is 0 when no such limit is known.
	exceeded() int64
	close()
}

// The names of the contenders.
const (
	Unlimited = "no limit"
	Failsafe  = "failsafe-go/adaptivelimiter in each"
	Weir      = "weir"
)

// contenders are the ways to limit what is in flight, by name.
var contenders = []struct {
	name string
	make func(processes int) fleet
}{
	{Unlimited, func(int) fleet { return unlimited{} }},
	{Failsafe, newFailsafe},
	{Weir, newWeir},
}

// unlimited forwards everything.
type unlimited struct{}

func (unlimited) acquire(int) func() { return func() {} }
func (unlimited) exceeded() int64    { return 0 }
func (unlimited) close()             {}

// A failsafe is an adaptive limiter in each process, as its authors set it up.
type failsafe []adaptivelimiter.AdaptiveLimiter[any]

func newFailsafe(processes int) fleet {
	f := make(failsafe, processes)
	for i := range f {
		f[i] = adaptivelimiter.NewWithDefaults[any]()
	}
	return f
}

func (f failsafe) acquire(i int) func() {
	permit, ok := f[i].TryAcquirePermit()
	if !ok {
		return nil
	}
	return permit.Record
}

func (failsafe) exceeded() int64 { return 0 }
func (failsafe) close()          {}

// A weir is a guard in each process, and one coordinator a millisecond away.
type weir struct {
	guards      []*concurrency.Guard
	coordinator *coordinator
}

// newWeir sets all up as a ConcurrencyPool does that says nothing but its most.
func newWeir(processes int) fleet {
	const most, initial = 200, 16
	w := &weir{coordinator: &coordinator{state: pool.New(1)}}
	for i := range processes {
		w.guards = append(w.guards, concurrency.New(concurrency.Config{
			Key: pool.Key{Cluster: "bench", Namespace: "bench", Name: "bench"}, Holder: string(rune('a' + i)),
			Params: pool.Params{
				Min: 1, Max: most, Initial: initial, Handoff: pool.Acknowledged,
				TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 1,
			},
			Law: adaptive.Config{
				Algorithm: adaptive.Gradient2, Min: 1, Max: most, Initial: initial,
				Baseline:  adaptive.Baseline{Type: adaptive.Measured, Interval: 10 * limiter.Second, ProbeSamples: 20},
				Smoothing: 0.2, Tolerance: 1.5,
			},
			Heartbeat: concurrency.Heartbeat{Interval: time.Second, MinInterval: 100 * time.Millisecond, Eager: true},
			Margin:    500 * time.Millisecond,
		}, w.coordinator))
	}
	return w
}

func (w *weir) acquire(i int) func() {
	slot, verdict := w.guards[i].Acquire(context.Background(), concurrency.Request{})
	if verdict != concurrency.Admitted {
		return nil
	}
	w.coordinator.enter()
	return func() {
		w.coordinator.leave()
		slot.Release(concurrency.Served)
	}
}

func (w *weir) exceeded() int64 {
	w.coordinator.mu.Lock()
	defer w.coordinator.mu.Unlock()
	return w.coordinator.most
}

func (w *weir) close() {
	var all sync.WaitGroup
	for _, g := range w.guards {
		all.Go(func() { g.Close(context.Background()) })
	}
	all.Wait()
}

// A coordinator divides one pool in memory. An answer takes a millisecond. It counts by
// itself what the fleet has in flight.
type coordinator struct {
	mu             sync.Mutex
	state          *pool.State
	inFlight, peak int64 // the latter since the last command
	most           int64 // of the peaks over what may have been in flight
}

func (c *coordinator) Apply(_ context.Context, _ pool.Key, p pool.Params, command pool.Command) (pool.Grant, error) {
	const way = 500 * time.Microsecond
	time.Sleep(way)
	defer time.Sleep(way)
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.state.Step(p, limiter.Instant(time.Now().UnixMicro()), command)
	if command.Op == pool.Beat {
		c.most = max(c.most, c.peak-g.Bound)
	}
	c.peak = c.inFlight
	return g, err
}

func (c *coordinator) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight++
	c.peak = max(c.peak, c.inFlight)
}

func (c *coordinator) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
}

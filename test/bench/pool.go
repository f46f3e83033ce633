package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	peerSlot = "failsafe-go/adaptivelimiter"

	roomy = 10_000 // a limit that no run fills
	beats = 0.01   // allocations of a heartbeat a second, by the requests between two
)

// overPool shows what it costs to take a slot and to give it back.
func overPool(show func(*table)) error {
	const note = "Weir and failsafe-go measure latency, so they read the clock twice. A slot of Weir shall cost no allocation, and less than one of failsafe-go."
	reached := func(r *sweptRow, all map[string]*sweptRow) string {
		ahead := true
		for n, ns := range r.at {
			ahead = ahead && ns < all[peerSlot].at[n]
		}
		return fmt.Sprintf("goal no allocation: %s. Goal below failsafe-go at every number: %s.", met(r.allocs <= beats), met(ahead))
	}
	show(sweep("A slot acquired and released", note, reached, func() []contender {
		return []contender{
			limitSlot(), guard("weir", slots.Config{}),
			guard("weir, two partitions and a queue", slots.Config{
				Partitions: []slots.Partition{{Name: "gold", GuaranteedPercent: 50}, {Name: "silver", GuaranteedPercent: 25}},
				Queue:      slots.Queue{MaxLength: 100, MaxWait: limiter.Second},
			}),
			failsafe(), semaphore(),
		}
	}))
	return nil
}

// limitSlot is the physical limit of a contender that measures latency: it counts up and
// down, and reads the clock both times.
func limitSlot() contender {
	var n atomic.Int64
	start := time.Now()
	return peer("limit: two atomic adds + two clock readings", func(string) bool {
		admitted := n.Add(1) <= roomy
		begin := time.Since(start)
		took := time.Since(start) - begin
		return n.Add(-1) >= 0 && admitted && took >= 0
	}, keep)
}

// guard is a holder of a pool whose coordinator is in the process.
func guard(name string, s slots.Config) contender {
	g := concurrency.New(concurrency.Config{
		Key: pool.Key{Cluster: "bench", Namespace: "bench", Name: "bench"}, Holder: "bench",
		Params: pool.Params{
			Min: 1, Max: roomy, Initial: roomy, Handoff: pool.Acknowledged,
			TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 1,
		},
		Law: adaptive.Config{
			Algorithm: adaptive.Gradient2, Min: 1, Max: roomy, Initial: roomy,
			Baseline:  adaptive.Baseline{Type: adaptive.Measured, Interval: 10 * limiter.Second, ProbeSamples: 10},
			Smoothing: 0.2, Tolerance: 1.5,
		},
		Slots:     s,
		Heartbeat: concurrency.Heartbeat{Interval: time.Second, MinInterval: 100 * time.Millisecond, Eager: true},
		Margin:    500 * time.Millisecond,
	}, &coordinator{state: pool.New(1)})
	ctx := context.Background()
	return contender{name: name, ours: true, decide: func(string) bool {
		slot, verdict := g.Acquire(ctx, concurrency.Request{})
		slot.Release(concurrency.Served)
		return verdict == concurrency.Admitted
	}, close: func() { g.Close(ctx) }}
}

// A coordinator divides one pool in memory.
type coordinator struct {
	mu    sync.Mutex
	state *pool.State
}

func (c *coordinator) Apply(_ context.Context, _ pool.Key, p pool.Params, command pool.Command) (pool.Grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Step(p, limiter.Instant(time.Now().UnixMicro()), command)
}

// failsafe is an adaptive limit of one process.
func failsafe() contender {
	l := adaptivelimiter.NewBuilder[any]().WithLimits(1, roomy, roomy).Build()
	return peer(peerSlot, func(string) bool {
		permit, ok := l.TryAcquirePermit()
		if ok {
			permit.Record()
		}
		return ok
	}, keep)
}

// semaphore is a fixed limit that measures nothing.
func semaphore() contender {
	c := make(chan struct{}, roomy)
	return peer("channel as semaphore", func(string) bool {
		select {
		case c <- struct{}{}:
			<-c
			return true
		default:
			return false
		}
	}, keep)
}

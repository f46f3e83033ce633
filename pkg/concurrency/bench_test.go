package concurrency

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BenchmarkSlot asks for a slot and releases it, on some goroutines at once. None is
// refused.
func BenchmarkSlot(b *testing.B) {
	laws := map[string]adaptive.Config{
		"fixed": {Algorithm: adaptive.Fixed, Max: 1000},
		"gradient2": {
			Algorithm: adaptive.Gradient2, Min: 100, Max: 1000, Initial: 1000, Smoothing: 0.2, Tolerance: 2,
			Baseline: adaptive.Baseline{Type: adaptive.Rolling, Samples: 100},
		},
	}
	for name, law := range laws {
		for _, n := range []int{1, 4, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d goroutines", name, n), func(b *testing.B) {
				cfg := fixed("a", 1000)
				cfg.Law, cfg.Params.TTL = law, 60*limiter.Second
				g := New(cfg, part(1000, 1000))
				defer g.Close(b.Context())
				for g.Stats().Ceiling == 0 {
					time.Sleep(time.Millisecond)
				}
				b.ReportAllocs()
				b.ResetTimer()
				spread(b.N, n, func(rounds int) {
					for range rounds {
						s, v := g.Acquire(context.Background(), Request{})
						if v != Admitted {
							panic(v)
						}
						s.Release(Served)
					}
				})
			})
		}
	}
}

// BenchmarkRefused asks for a slot of a full guard.
func BenchmarkRefused(b *testing.B) {
	g := New(fixed("a", 1), answers(func(c pool.Command) (pool.Grant, error) { return part(0, 0)(c) }))
	defer g.Close(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		g.Acquire(context.Background(), Request{})
	}
}

// spread divides n rounds over goroutines.
func spread(n, goroutines int, f func(rounds int)) {
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() { f(n/goroutines + 1) })
	}
	all.Wait()
}

package memory_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BenchmarkApply beats for one holder after another of one pool.
func BenchmarkApply(b *testing.B) {
	for _, holders := range []int{8, 512, 5000} {
		b.Run(fmt.Sprintf("%d holders", holders), func(b *testing.B) {
			start := time.Now()
			c := memory.New(memory.Options{Clock: func() limiter.Instant { return suite.Start.Add(limiter.Micros(time.Since(start).Microseconds())) }, Term: 1, First: true})
			p := pool.Params{Min: 1, Max: pool.MaxLimit, Initial: int64(20 * holders), TTL: 600 * limiter.Second, Generation: 1}
			list := make([]pool.Command, holders)
			for i := range list {
				list[i] = pool.Command{Op: pool.Beat, Holder: fmt.Sprintf("f86b5c5c-8d0e-4a4e-9f0e-%012d/k3f9", i), Limit: int64(20*holders + i)}
			}
			at := 0
			one := func() {
				cmd := &list[at]
				if at++; at == holders {
					at = 0
				}
				cmd.Seq++
				g, err := c.Apply(b.Context(), web, p, *cmd)
				if err != nil {
					b.Fatal(err)
				}
				cmd.Term, cmd.Applied, cmd.Held, cmd.InFlight, cmd.Peak = g.Term, g.Generation, g.Share, g.Share/2, g.Share
			}
			for range 3 * holders {
				one()
			}
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// BenchmarkManyPools beats from as many goroutines as there are processors, each for
// a pool of its own.
func BenchmarkManyPools(b *testing.B) {
	c := memory.New(memory.Options{Clock: func() limiter.Instant { return suite.Start }, Term: 1, First: true})
	var pools atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		key := web
		key.Name = fmt.Sprint(pools.Add(1))
		cmd := pool.Command{Op: pool.Beat, Holder: "a"}
		for pb.Next() {
			cmd.Seq++
			if _, err := c.Apply(b.Context(), key, params(8), cmd); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

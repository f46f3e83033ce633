package slots_test

import (
	"sync"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// TestSteadyStateDoesNotAllocate covers a request that is admitted, one that is
// refused, and one that waits.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	table := slots.New(guaranteed)
	round := func() {
		a, _ := table.Acquire(0, gold, 1)
		b, _ := table.Acquire(0, gold, 1)
		c, _ := table.Acquire(0, silver, 1)
		table.Release(a)
		table.Next(1)
		table.Release(b)
		table.Release(c)
		table.Acquire(0, silver, 0)
		table.Expire(1000)
		table.Mark()
		table.Forget()
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

// BenchmarkAcquireRelease compares one request's way through a table, under the lock
// that its owner holds, with a channel as semaphore.
func BenchmarkAcquireRelease(b *testing.B) {
	const ceiling = 1 << 10
	for name, config := range map[string]slots.Config{"table": {}, "table with partitions and queue": guaranteed} {
		b.Run(name, func(b *testing.B) {
			var mu sync.Mutex
			table := slots.New(config)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					mu.Lock()
					k, _ := table.Acquire(0, gold, ceiling)
					mu.Unlock()
					mu.Lock()
					table.Release(k)
					table.Next(ceiling)
					mu.Unlock()
				}
			})
		})
	}
	b.Run("channel", func(b *testing.B) {
		semaphore := make(chan struct{}, ceiling)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				select {
				case semaphore <- struct{}{}:
					<-semaphore
				default:
				}
			}
		})
	})
}

package pooltest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// Benchmark beats for the holders of one pool, each waiting for its answer: for all
// of them one after another, and for as many at once as callers.
func Benchmark(b *testing.B, c Coordinator) {
	for _, callers := range []int{1, 16} {
		for _, holders := range []int{8, 64, 512, 5000} {
			b.Run(fmt.Sprintf("callers=%d/holders=%d", callers, holders), func(b *testing.B) {
				f := newFleet(c, holders)
				for range 3 {
					f.beat(b, callers, holders)
				}
				b.ResetTimer()
				f.beat(b, callers, b.N)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "beats/s")
			})
		}
	}
}

// A fleet is many holders of one pool that do what holders mostly do: infer a limit
// that moves a little, and confirm their share.
type fleet struct {
	c      Coordinator
	key    pool.Key
	params pool.Params
	list   []pool.Command
}

func newFleet(c Coordinator, holders int) *fleet {
	f := &fleet{
		c: c, key: pool.Key{Cluster: "c", Namespace: "n", Name: fmt.Sprint("bench-", holders)},
		params: pool.Params{Min: 1, Max: pool.MaxLimit, Initial: int64(20 * holders), TTL: long, Generation: 1},
		list:   make([]pool.Command, holders),
	}
	for i := range f.list {
		f.list[i] = pool.Command{Op: pool.Beat, Holder: fmt.Sprintf("f86b5c5c-8d0e-4a4e-9f0e-%012d/k3f9", i)}
	}
	return f
}

// beat sends that many beats, of different holders at once.
func (f *fleet) beat(b *testing.B, callers, beats int) {
	callers = min(callers, len(f.list))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < beats; i += callers {
				mine := len(f.list) / callers
				if err := f.one(b, &f.list[caller*mine+i/callers%mine]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (f *fleet) one(b *testing.B, c *pool.Command) error {
	c.Seq++
	c.Limit = int64(20*len(f.list)) + c.Seq%7
	g, err := f.c.Apply(b.Context(), f.key, f.params, *c)
	c.Seq = max(c.Seq, g.Seq)
	c.Term, c.Applied, c.Held, c.InFlight, c.Peak = g.Term, g.Generation, g.Share, g.Share/2, g.Share
	return err
}

package pool_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BenchmarkStep beats for one holder after another, each once a second, as guards
// do: they confirm their shares, and what they have in flight and infer moves.
func BenchmarkStep(b *testing.B) {
	for _, allocation := range []pool.Allocation{pool.EqualSplit, pool.DemandProportional} {
		for _, holders := range []int{8, 512, 5000} {
			b.Run(fmt.Sprintf("%s/%d holders", [...]string{"EqualSplit", "DemandProportional"}[allocation], holders), func(b *testing.B) {
				p := pool.Params{
					Min: 1, Max: pool.MaxLimit, Initial: 100, Allocation: allocation,
					TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 1,
				}
				f := newBenchFleet(holders)
				for range 3 * holders {
					f.beat(b, p)
				}
				b.ReportAllocs()
				for b.Loop() {
					f.beat(b, p)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
			})
		}
	}
}

type benchFleet struct {
	s    *pool.State
	dice *rand.Rand
	now  limiter.Instant
	list []pool.Command
	next int
}

func newBenchFleet(holders int) *benchFleet {
	f := &benchFleet{s: pool.New(1), dice: rand.New(rand.NewPCG(1, 6)), now: 1_790_000_000_000_000, list: make([]pool.Command, holders)}
	for i := range f.list {
		f.list[i] = pool.Command{
			Op: pool.Beat, Holder: fmt.Sprintf("f86b5c5c-8d0e-4a4e-9f0e-%012d/k3f9", i),
			Limit: int64(20*holders + f.dice.IntN(2*holders)), // such that a share is about 20
		}
	}
	return f
}

func (f *benchFleet) beat(b *testing.B, p pool.Params) {
	c := &f.list[f.next]
	if f.next++; f.next == len(f.list) {
		f.next = 0
	}
	f.now += limiter.Instant(limiter.Second) / limiter.Instant(len(f.list))
	c.Seq++
	g, err := f.s.Step(p, f.now, *c)
	if err != nil {
		b.Fatal(err)
	}
	c.Term, c.Applied, c.Held = g.Term, g.Generation, g.Share
	c.InFlight = f.dice.Int64N(g.Share + 1)
	c.Peak = c.InFlight
	c.Limit = max(1, c.Limit+f.dice.Int64N(21)-10)
}

// BenchmarkClone copies a pool, as an exhaustive search does.
func BenchmarkClone(b *testing.B) {
	s := pool.New(1)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := s.Step(fixed(8), 0, pool.Command{Op: pool.Beat, Holder: name, Seq: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Clone()
	}
}

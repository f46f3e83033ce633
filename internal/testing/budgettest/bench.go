package budgettest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Benchmark leases from one budget of that many members, each holder one unit after
// another and each call when the one before was answered: for one holder, and for 16 at
// once.
func Benchmark(b *testing.B, s Subject) {
	for _, callers := range []int{1, 16} {
		for _, members := range []int{4, ledger.MaxMembers} {
			b.Run(fmt.Sprintf("callers=%d/members=%d", callers, members), func(b *testing.B) {
				p := ledger.Params{Limit: limiter.MaxLimit, Window: limiter.Second, Block: s.Block}
				for i := range members {
					p.Members = append(p.Members, ledger.Member{Name: fmt.Sprintf("region-%02d", i), Weight: 1, Borrowing: -1})
				}
				lease(b, s.Coordinator, p, callers, 3*members) // a standing for each
				b.ResetTimer()
				lease(b, s.Coordinator, p, callers, b.N)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leases/s")
			})
		}
	}
}

// lease sends that many commands from as many holders at once.
func lease(b *testing.B, c Coordinator, p ledger.Params, callers, commands int) {
	b.Helper()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			m := holder{id: b.Name(), name: fmt.Sprintf("f86b5c5c-8d0e-4a4e-9f0e-%012d", i)}
			for n := i; n < commands; n += callers {
				m.member = p.Members[n%len(p.Members)].Name
				g, err := c.Apply(b.Context(), m.id, p, m.asking(1, 1))
				if err != nil {
					b.Error(err)
					return
				}
				m.seq = max(m.seq, g.Seq)
			}
		})
	}
	all.Wait()
}

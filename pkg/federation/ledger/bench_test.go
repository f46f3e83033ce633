package ledger_test

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func BenchmarkStep(b *testing.B) {
	for _, n := range []int{3, 64} {
		for name, strategy := range map[string]ledger.Strategy{"FairShare": ledger.FairShare, "FirstCome": ledger.FirstCome} {
			b.Run(fmt.Sprintf("%s/members=%d", name, n), func(b *testing.B) {
				p := ledger.Params{Limit: limiter.MaxLimit, Window: limiter.MaxWindow, Strategy: strategy}
				for i := range n {
					p.Members = append(p.Members, ledger.Member{Name: fmt.Sprintf("m%02d", i), Weight: int64(1 + i%7), Borrowing: -1})
				}
				var s ledger.State
				var g ledger.Grant
				commands := make([]ledger.Command, n)
				for i := range commands {
					commands[i] = ledger.Command{
						Op: ledger.Lease, Member: p.Members[i].Name, Holder: "h", Min: 1, Want: 1,
						Demand: int64(1+i%5) * limiter.MaxLimit / int64(3*n), Memory: ledger.Memory{Term: 1},
					}
				}
				seq := int64(0)
				b.ReportAllocs()
				for b.Loop() {
					c := &commands[seq%int64(n)]
					seq++
					c.Seq = seq
					s, g = s.Step(p, base, *c)
					c.Epoch, c.Granted = g.Epoch, g.Granted
				}
			})
		}
	}
}

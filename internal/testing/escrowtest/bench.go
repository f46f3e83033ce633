package escrowtest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Benchmark takes units of one budget, one after another and by 16 callers that each
// wait for their answer.
func Benchmark(b *testing.B, e Escrow) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			grant(b, e)
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for caller := range callers {
				all.Go(func() {
					for range (b.N - caller + callers - 1) / callers {
						if r, err := e.Apply(b.Context(), "bench", take(8)); err != nil || r.Granted != 8 {
							b.Errorf("took %d: %v", r.Granted, err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
		})
	}
}

// grant lets an escrow have more than a benchmark takes.
func grant(b *testing.B, e Escrow) {
	asked, err := e.Apply(b.Context(), "bench", escrow.Command{Op: escrow.Ask, Holder: "h"})
	if err != nil {
		b.Fatal(err)
	}
	g := ledger.Grant{Reason: ledger.Granted, Seq: asked.Seq, Epoch: epoch(1+asked.Seq, 1), Granted: limiter.MaxLimit}
	if _, err := e.Apply(b.Context(), "bench", escrow.Command{
		Op: escrow.Fill, Holder: asked.Holder, At: asked.Now, ExpiresIn: limiter.MaxWindow, Grant: g,
	}); err != nil {
		b.Fatal(err)
	}
}

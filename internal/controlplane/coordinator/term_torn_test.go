package coordinator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records/recordstest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// TestATornLedgerGrantsNothingOfOpenWindows follows a torn hand-over through a term,
// and the same hand-over when it is whole.
func TestATornLedgerGrantsNothingOfOpenWindows(t *testing.T) {
	const limit = 10
	part := func(term uint64) string { return fmt.Sprintf("%s-%d-0", records.TermConfigMap, term) }
	key := store.Key{Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "checkout", Limit: "all"}}
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: 3600 * limiter.Second}}}
	take := func(tm *term, want int64) limiter.Result {
		res, err := tm.store.Apply(t.Context(), key, p, limiter.Command{Min: 1, Want: want})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for name, tear := range map[string]func(held *recordstest.ConfigMaps, earlier, last uint64){
		"whole":       func(*recordstest.ConfigMaps, uint64, uint64) {},
		"a part lost": func(h *recordstest.ConfigMaps, _, last uint64) { delete(h.Held, part(last)) },
		"an older part": func(h *recordstest.ConfigMaps, earlier, last uint64) {
			h.Held[part(last)].BinaryData = h.Held[part(earlier)].BinaryData
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := recordstest.Holding()
				terms := records.NewTerms(held)
				c := New(Config{Terms: terms})
				lead := func() *term {
					begun, err := terms.Begin(t.Context(), leads)
					if err != nil {
						t.Fatal(err)
					}
					tm := newTerm(c, begun, logr.Discard())
					tm.tasks.ShutDown()
					return tm
				}
				// All of the ledger is in one part: each is good by itself, and only one is the last.
				end := func(tm *term) {
					ledger, _, err := tm.store.Export(records.MaxHandover)
					if err != nil {
						t.Fatal(err)
					}
					h := records.Handover{Term: tm.number, Stopped: tm.clock.Now(), Pools: make([]byte, records.MaxObject), Ledger: ledger}
					if err := terms.End(t.Context(), h); err != nil {
						t.Fatal(err)
					}
				}
				first := lead()
				time.Sleep(time.Second)
				take(first, 1)
				end(first)
				second := lead()
				take(second, limit-1)
				end(second)
				tear(held, first.number, second.number)
				time.Sleep(time.Second)
				want := limiter.Amnesia
				if name == "whole" {
					want = limiter.Exhausted
				}
				if got := take(lead(), limit); got.Granted != 0 || got.Reason != want {
					t.Errorf("granted %d of a window that is used up (%v), want nothing for reason %v", got.Granted, got.Reason, want)
				}
			})
		})
	}
}

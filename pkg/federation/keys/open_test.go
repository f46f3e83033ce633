package keys_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// TestWhatTheLedgerGrantedIsOfEveryValue: it is taken off the limit of an override as off that of
// all.
func TestWhatTheLedgerGrantedIsOfEveryValue(t *testing.T) {
	p := ledger.Params{
		Limit: 100, Window: limiter.Second, Strategy: ledger.FirstCome, Keys: 10,
		Members:   []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}},
		Overrides: overrides(map[string]int64{"more": 500, "fewer": 20}),
	}
	const now = limiter.Instant(5_500_000)
	memory := ledger.Memory{Term: 1}
	state, g := ledger.State{}.Step(p, now, ledger.Command{Op: ledger.Lease, Member: "a", Holder: "h", Seq: 1, Min: 30, Want: 30, Memory: memory})
	if g.Granted != 30 {
		t.Fatalf("%+v, want 30 units", g)
	}
	_, w, reply := keys.Open(state, p, now, memory, "a")
	if reply.Reason != ledger.Granted {
		t.Fatalf("%+v", reply)
	}
	b := &keys.Book{Share: store.SharedHashOf}
	for value, want := range map[string]int64{"more": 470, "fewer": 0, "other": 70} {
		a := ask(value, 1)
		a.Want = 1000
		if g := b.Take(w, a); g.Units != want {
			t.Errorf("%s is granted %+v, want %d units", value, g, want)
		}
	}
}

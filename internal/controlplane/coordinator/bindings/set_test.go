package bindings

import (
	"maps"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// TestALimitIsKnownToDrawUntilTheSentinelsWindowIsOver, and the one after it, in which units may
// come back.
func TestALimitIsKnownToDrawUntilTheSentinelsWindowIsOver(t *testing.T) {
	scope, rate := store.Scope{Limit: "l"}, limiter.Rate{Limit: 10, Window: limiter.Second}
	d, open := NewSet(), rate.WindowAt(0)
	ends := open.End().Add(5 * limiter.Second)
	drawn := limiter.Windows{N: 1, Open: [limiter.MaxRates]limiter.OpenWindow{open}}
	d.Note(Binding{Scope: scope, Rates: []limiter.Rate{rate}}, drawn, ends)
	for now, want := range map[limiter.Instant]bool{ends.Add(limiter.Second) - 1: true, ends.Add(limiter.Second): false} {
		d := &Set{byScope: maps.Clone(d.byScope)}
		d.Sweep(now)
		if _, known := d.Last(scope); known != want {
			t.Errorf("%d after the sentinel's window: known %t, want %t", now-ends, known, want)
		}
	}
}

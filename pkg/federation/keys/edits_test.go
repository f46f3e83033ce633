package keys_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// TestEditsOfAWindowAreBounded in memory, and those of a value that was granted units are kept.
func TestEditsOfAWindowAreBounded(t *testing.T) {
	b := newBook()
	w := keys.Window{Index: 1, Pool: 10, Overrides: overrides(map[string]int64{"x": 30})}
	b.Take(w, ask("x", 1))
	w.Overrides = overrides(map[string]int64{"x": 5})
	b.Take(w, ask("y", 1))
	begin := heap()
	for i := range 80 {
		of := map[string]int64{}
		for n := range int(ledger.MaxOverrides) {
			of[fmt.Sprint(i, n)] = 5
		}
		w.Overrides = overrides(of)
		b.Take(w, ask("y", 1))
	}
	if grown := heap() - begin; grown > 4<<20 {
		t.Errorf("%d bytes more are in use after edits", grown)
	}
	w.Overrides = overrides(map[string]int64{"x": 30})
	a := ask("x", 1)
	a.Want = 1000
	if g := b.Take(w, a); g.Units != 4 {
		t.Errorf("%+v of a value whose limit was 5 for a time, want the rest of that, 4 units", g)
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

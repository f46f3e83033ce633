package keys_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// TestARoomIsThatOfTheOpenWindow counts keys by themselves, and those that share.
func TestARoomIsThatOfTheOpenWindow(t *testing.T) {
	b := keys.Book{Share: store.SharedHashOf}
	w := keys.Window{Length: limiter.Second, Index: 5, Pool: 100, Keys: 2}
	for i, tc := range []struct {
		index int64
		hash  string
		want  keys.Room
	}{
		{5, "a", keys.Room{Counters: 1}},
		{5, "a", keys.Room{Counters: 1}},
		{5, "b", keys.Room{Counters: 2}},
		{5, "c", keys.Room{Counters: 3, Full: true}},
		{5, "a", keys.Room{Counters: 3, Full: true}},
		{6, "a", keys.Room{Counters: 1}},
	} {
		w.Index = tc.index
		if g := b.Take(w, keys.KeyAsk{Hash: tc.hash, Ask: keys.Ask{Min: 1, Want: 1}}); g.Units != 1 {
			t.Fatalf("%d: %+v", i, g)
		}
		if got := b.Room(); got != tc.want {
			t.Errorf("%d: after %s in window %d: %+v, want %+v", i, tc.hash, tc.index, got, tc.want)
		}
	}
	w.Index = 5
	if b.Take(w, keys.KeyAsk{Hash: "late", Ask: keys.Ask{Min: 1, Want: 1}}); b.Room() != (keys.Room{Counters: 1}) {
		t.Errorf("a window that is over counts: %+v", b.Room())
	}
}

func TestACrowdGoesByTheWindowBeforeAsWell(t *testing.T) {
	type heard struct {
		index int64
		keys.Room
	}
	const at = 10
	full := func(n int64) keys.Room { return keys.Room{Counters: n, Full: true} }
	few := func(n int64) keys.Room { return keys.Room{Counters: n} }
	for name, tc := range map[string]struct {
		said []heard
		want keys.Room
	}{
		"nothing":                {nil, few(0)},
		"the open window":        {[]heard{{at, few(3)}}, few(3)},
		"the most of it":         {[]heard{{at, full(4)}, {at, few(3)}}, full(4)},
		"the one before":         {[]heard{{at - 1, full(9)}}, full(9)},
		"one after the other":    {[]heard{{at - 1, full(9)}, {at, few(2)}}, full(9)},
		"one long ago":           {[]heard{{at - 2, full(9)}}, few(0)},
		"one long before it":     {[]heard{{at - 2, full(9)}, {at, few(2)}}, few(2)},
		"two before it":          {[]heard{{at - 2, full(9)}, {at - 1, few(3)}, {at, few(2)}}, few(3)},
		"two before, not it":     {[]heard{{at - 2, full(9)}, {at - 1, few(3)}}, few(3)},
		"an answer that is late": {[]heard{{at, few(2)}, {at - 1, full(9)}}, few(2)},
		"one to come":            {[]heard{{at + 1, full(9)}}, few(0)},
	} {
		t.Run(name, func(t *testing.T) {
			var c keys.Crowd
			for _, h := range tc.said {
				c = c.Hear(h.index, h.Room)
			}
			if got := c.In(at); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

package concurrency

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// perKey returns eager configuration whose limit is that of every key.
func perKey(holder string, limit int64) Config {
	c := eager(holder, limit)
	c.PerKey = true
	return c
}

// ask asks for a slot of a key.
func ask(t *testing.T, g *Guard, key string, want Verdict) Slot {
	t.Helper()
	s, got := g.Acquire(t.Context(), Request{Key: key})
	if got != want {
		t.Fatalf("a request of %q: %v, want %v; %+v", key, got, want, g.Stats())
	}
	return s
}

func TestEveryKeyHasTheWholeShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, perKey("a", 2), constant(2))
		gold := ask(t, g, "gold", Admitted)
		ask(t, g, "gold", Admitted)
		ask(t, g, "gold", Full)
		ask(t, g, "free", Admitted)
		ask(t, g, "", Admitted) // a key like any other
		if s := g.Stats(); s.InFlight != 2 || s.Keys != 3 || s.Admitted != 4 || s.Refused != 1 {
			t.Errorf("stats %+v, want 2 in flight of one key, 3 keys, 4 admitted and 1 refused", s)
		}
		if w := g.TakeWorst(); w.Peak != 2 {
			t.Errorf("the peak is %d, want 2 of one key", w.Peak)
		}
		again := gold
		gold.Release(Served)
		again.Release(Served) // a copy
		if s := g.Stats(); s.InFlight != 1 || s.Keys != 3 {
			t.Errorf("stats %+v, want one in flight of each key", s)
		}
		ask(t, g, "gold", Admitted)
		ask(t, g, "gold", Full)
	})
}

// The coordinator has to be reported the key that has the most in flight: by the sum the
// holder would keep what it does not use, and by another key it would give up what it uses.
func TestTheFullestKeyIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := newLine(constant(3))
		g := open(t, perKey("a", 3), way)
		ask(t, g, "free", Admitted)
		var gold []Slot
		for range 3 {
			gold = append(gold, ask(t, g, "gold", Admitted))
		}
		gold[0].Release(Served)
		pass(time.Second)
		if c := way.last(t); c.InFlight != 2 || c.Peak != 3 {
			t.Errorf("beat %+v, want 2 in flight and 3 at the peak", c)
		}
		release(gold[1:])
		pass(2 * time.Second)
		if c := way.last(t); c.InFlight != 1 || c.Peak != 1 {
			t.Errorf("beat %+v, want 1 in flight, and no older peak", c)
		}
	})
}

// A share that became smaller is confirmed as drained to when every key has.
func TestAShareIsGivenUpWhenEveryKeyHasDrainedToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := remember()
		first := open(t, perKey("a", 4), leader)
		gold := []Slot{ask(t, first, "gold", Admitted), ask(t, first, "gold", Admitted), ask(t, first, "gold", Admitted)}
		ask(t, first, "free", Admitted)
		second := open(t, perKey("b", 4), leader)
		pass(3 * time.Second)
		if a, b := first.Stats(), second.Stats(); a.Share != 2 || b.Share != 1 {
			t.Errorf("shares %d and %d while 3 are in flight of one key, want 2 and 1", a.Share, b.Share)
		}
		ask(t, first, "free", Admitted)
		ask(t, first, "free", Full)
		ask(t, second, "gold", Admitted)
		ask(t, second, "gold", Full)
		gold[0].Release(Served)
		pass(3 * time.Second)
		if b := second.Stats(); b.Share != 2 {
			t.Errorf("a share of %d when the key has drained, want 2", b.Share)
		}
	})
}

func TestAKeyIsRefusedWithoutAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := newLine(constant(2))
		way.err = errDown
		g := open(t, perKey("a", 2), way)
		ask(t, g, "gold", Unassigned)
		way.set(func() { way.err = nil })
		pass(time.Second)
		held := ask(t, g, "gold", Admitted)
		way.set(func() { way.err = errDown })
		pass(3 * time.Second)
		ask(t, g, "gold", Fenced)
		ask(t, g, "free", Fenced)
		held.Release(Served)
		if s := g.Stats(); !s.Fenced || s.Keys != 0 {
			t.Errorf("stats %+v, want it fenced, and no key in use", s)
		}
	})
}

func TestALimitPerKeyIsNotInferred(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"a law that infers": func(c *Config) { c.Law.Algorithm = adaptive.AIMD },
		"a partition":       func(c *Config) { c.Slots.Partitions = []slots.Partition{{Name: "live"}} },
	} {
		c := perKey("a", 2)
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

package keys_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// An amended is a coordinator of two keys, one of them with an override that is edited while the
// window is open. Memories follow each other; each counts one key by itself beside it, and the
// others together. Messages take no time.
type amended struct {
	limit, own     int64 // of all, and of the override
	changes, edits int   // memories that follow, and edits

	// Each of these takes a rule away.
	ofAll bool // the override is the limit of all keys
	moves bool // a key that is given an override begins at a counter of its own
	apart bool // the other counter that a key may have had does not count
	spare int64

	counters []string // hashes of the key with the override, the other one, and the counter that keys share
}

// A scene is a state of it.
type scene struct {
	overrides bool // the override is there
	edits     int
	minds     []amendedMind
	record    keys.Aside
	had       [2]int64 // what each key was granted
	most      int64    // the largest limit that the first had
}

// An amendedMind is a memory of the coordinator.
type amendedMind struct {
	before, saved keys.Aside
	granted       []amendedGrant
	ended         bool // it handed over, and grants no more
}

// An amendedGrant is a unit of a key, while the override was there or not.
type amendedGrant struct {
	key       int
	overrides bool
}

func (c *amended) window(overrides bool) keys.Window {
	w := keys.Window{Index: 1, Pool: c.limit, Block: 1, Keys: 1}
	switch {
	case overrides && c.ofAll:
		w.Pool = c.own
	case overrides:
		w.Overrides = []ledger.Override{{Hash: c.counters[0], Limit: c.own, Block: 1}}
	}
	return w
}

// book returns the book of a memory, by granting again what it granted.
func (c *amended) book(s *scene, m int) *keys.Book {
	b := &keys.Book{Share: func(string, int) string { return c.counters[2] }}
	b.Before = s.minds[m].before
	granted := s.minds[m].granted
	for i, g := range granted {
		w, hash := c.window(g.overrides), c.counters[g.key]
		w.Block = 0 // as all of it was set aside
		if c.moves && s.overrides {
			w.Overrides = c.window(true).Overrides
			if shared := granted[0].key == 1 && !granted[0].overrides; shared && i > 0 && g.key == 0 && !g.overrides {
				hash = c.counters[2]
			}
		}
		if b.Take(w, keys.KeyAsk{Hash: hash, Ask: keys.Ask{Min: 1, Want: 1}}).Units != 1 && !c.moves {
			panic("a grant cannot be made again")
		}
	}
	b.Saved = s.minds[m].saved
	return b
}

func (c *amended) ask(key int) keys.KeyAsk {
	return keys.KeyAsk{Hash: c.counters[key], Ask: keys.Ask{Min: 1, Want: 1}}
}

func (c *amended) model() explore.Model[scene, string] {
	c.counters = hashes(3, false)
	return explore.Model[scene, string]{
		Init: []scene{{minds: make([]amendedMind, 1), most: c.limit}}, Next: c.next, Bound: 900_000,
		Encode: func(b []byte, s scene) []byte { return fmt.Append(b, s) },
		Check: func(s scene) error {
			most := s.most
			if s.edits > 0 {
				most -= c.spare
			}
			if s.had[0] > most || s.had[1] > c.limit && !c.apart {
				return fmt.Errorf("%d units granted of %d and %d of %d", s.had[0], s.most, s.had[1], c.limit)
			}
			return nil
		},
	}
}

func (c *amended) next(s scene) iter.Seq2[string, scene] {
	return func(yield func(string, scene) bool) {
		on := true
		do := func(change func(*scene), format string, args ...any) {
			next := s
			next.minds = slices.Clone(s.minds)
			change(&next)
			on = on && yield(fmt.Sprintf(format, args...), next)
		}
		if s.edits < c.edits {
			do(func(s *scene) {
				s.edits, s.overrides = s.edits+1, !s.overrides
				if s.overrides {
					s.most = max(s.most, c.own)
				}
			}, "the override is edited")
		}
		last := len(s.minds) - 1
		for m := range s.minds {
			for key := range s.had {
				if s.minds[m].ended {
					continue
				}
				b := c.book(&s, m)
				switch g := b.Take(c.window(s.overrides), c.ask(key)); {
				case g.Units > 0:
					do(func(s *scene) {
						s.had[key]++
						s.minds[m].granted = append(slices.Clip(s.minds[m].granted), amendedGrant{key, s.overrides})
					}, "memory %d grants a unit of key %d", m, key)
				case g.Lacks && m == last:
					do(func(s *scene) { s.record = b.Next(); s.minds[m].saved = s.record }, "memory %d sets a unit of key %d aside", m, key)
				}
			}
		}
		if last < c.changes {
			do(func(s *scene) { c.follow(s, s.record) }, "another memory begins")
			do(func(s *scene) {
				c.follow(s, c.book(s, last).Last())
				s.minds[last].ended = true
			}, "a memory hands over")
		}
	}
}

// follow has a memory begin with a record.
func (c *amended) follow(s *scene, record keys.Aside) {
	state := keys.Succeed(record)
	if c.apart {
		state.Before.Shared = 0
	}
	s.record = record
	s.minds = append(s.minds, amendedMind{before: state.Before, saved: state.Saved})
}

// An amendment is a model of it, how many states it has, and the length of the shortest history
// that reaches the bound, or that breaks it where a rule is missing.
type amendment struct {
	name   string
	states int // 0: a rule is missing
	steps  int
	of     amended
}

// missing reports whether a rule is.
func (a *amendment) missing() bool { return a.of.ofAll || a.of.moves || a.of.apart }

func amendments() []amendment {
	return []amendment{
		{"an override that is larger", 483, 5, amended{limit: 1, own: 2, changes: 1, edits: 2}},
		{"an override that is smaller", 2766, 5, amended{limit: 2, own: 1, changes: 1, edits: 2}},
		{"an override that is larger, and three memories", 1517, 5, amended{limit: 1, own: 2, changes: 2, edits: 1}},

		{"the limit of an override is that of its key alone", 0, 5, amended{limit: 1, own: 2, edits: 1, ofAll: true}},
		{"a key that is given an override stays where it is counted", 0, 8, amended{limit: 1, own: 2, edits: 1, moves: true}},
		{"what a key had of a counter that it shared counts against its override", 0, 9, amended{limit: 2, own: 3, changes: 1, edits: 1, apart: true}},
	}
}

func TestAnOverrideIsEditedInEveryHistory(t *testing.T) {
	for _, a := range amendments() {
		t.Run(a.name, func(t *testing.T) {
			refuted := a.of
			if !a.missing() {
				if r := explore.Hold(t, a.of.model(), nil); r.States != a.states {
					t.Errorf("%d states, want %d", r.States, a.states)
				}
				refuted.spare = 1
			}
			explore.RefuteIn(t, refuted.model(), a.steps)
		})
	}
}

package keys_test

import (
	"fmt"
	"iter"
	"slices"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/keys"
)

// A system is a model of a coordinator that is lost, the memories that follow, and regions
// with messages that take any time, are lost and overtake each other.
type system struct {
	groups  []int // of each key
	limit   int64
	block   int64
	regions int
	windows int64 // that pass
	ticks   int64 // in a window: how finely the clock is read
	sends   int   // commands of a region for a key, at most
	crashes int   // memories that are lost or overtaken, at most
	drops   int   // purses that are dropped, at most
	hands   bool  // processes take units of a purse, and spend them later or give them back
	hasty   bool  // a memory sets more aside before it has to
	slice   int64 // units of each window that each region uses of a key without asking

	rules rules
	spare int64
}

// rules are what memories and regions keep to. A weakening replaces one.
type rules struct {
	take    func(keys.State, keys.Window, int, int64, keys.Ask) keys.Grant
	aside   func(keys.State, keys.Window, map[int]int64) keys.Aside
	succeed func(keys.Aside) keys.State
	fill    func(p keys.Purse, a keys.Answer, now, life int64) keys.Purse
	open    func(p keys.Purse, now int64) keys.Purse
	putBack func(p keys.Purse, now, index int64) keys.Purse
	dropped func(keys.Use) keys.Use
	pool    func(limit, slices int64) int64
	old     bool // an overtaken memory may write
	early   bool // what is set aside counts when the write is sent
}

func production() rules {
	return rules{
		take: keys.State.Take, succeed: keys.Succeed,
		aside:   func(s keys.State, w keys.Window, wants map[int]int64) keys.Aside { return s.Aside(w, wants, 0) },
		fill:    func(p keys.Purse, a keys.Answer, _, _ int64) keys.Purse { return p.Fill(a) },
		open:    func(p keys.Purse, _ int64) keys.Purse { return p },
		dropped: func(u keys.Use) keys.Use { return u },
		pool:    func(limit, slices int64) int64 { return limit - slices },
		putBack: func(p keys.Purse, now, index int64) keys.Purse {
			p, _ = p.PutBack(now, index, 1)
			return p
		},
	}
}

// A world is a state of it.
type world struct {
	now      int64 // ticks
	record   keys.Aside
	version  int
	memories []memory
	regions  []region
	mail     []letter
	drops    int
	admitted [][]int64 // by key, of each window
}

// A memory is a coordinator in its own mind.
type memory struct {
	state   keys.State
	version int
	index   int64   // of the window of had
	had     []int64 // that it granted each key
	// A write is first sent, then it arrives, and then that is known.
	sent, arrived bool
	writes        keys.Aside
	lost          bool // it knows that it was overtaken
}

type region struct {
	purses []keys.Purse
	uses   []keys.Use
	sent   []int
	hand   []int64 // windows of units that a process took, of the first key
	until  []int64
}

// A letter is an ask, or its answer.
type letter struct {
	region, key int
	sent        int64 // tick
	answer      bool
	index       int64
	life        int64 // ticks
	units       int64
	remaining   int64
}

func (c *system) model() explore.Model[world, string] {
	w := world{memories: []memory{{had: make([]int64, len(c.groups))}}, admitted: make([][]int64, len(c.groups))}
	for range c.regions {
		w.regions = append(w.regions, region{purses: make([]keys.Purse, len(c.groups)), uses: make([]keys.Use, len(c.groups)), sent: make([]int, len(c.groups))})
	}
	for k := range c.groups {
		w.admitted[k] = make([]int64, c.windows)
	}
	return explore.Model[world, string]{
		Init: []world{w}, Next: c.next, Bound: 900_000,
		Encode: func(b []byte, w world) []byte {
			mail := slices.Clone(w.mail)
			slices.SortFunc(mail, func(a, b letter) int { return slices.Compare(fmt.Append(nil, a), fmt.Append(nil, b)) })
			b = fmt.Append(b, w.now, w.record, w.regions, mail, w.drops, w.admitted)
			for _, m := range w.memories { // of versions it matters only which is the record's
				m.version -= w.version
				b = fmt.Append(b, m.version == 0, m.state, m.index, m.had, m.sent, m.arrived, m.lost)
				if m.sent {
					b = fmt.Append(b, m.writes)
				}
			}
			return b
		},
		Check: func(w world) error {
			for k, windows := range w.admitted {
				for i, n := range windows {
					if n > c.limit-c.spare {
						return fmt.Errorf("%d of key %d admitted in window %d", n, k, i)
					}
				}
			}
			return nil
		},
	}
}

// copied returns a world that may be written to.
func (w world) copied() world {
	w.memories, w.regions, w.mail = slices.Clone(w.memories), slices.Clone(w.regions), slices.Clone(w.mail)
	for i := range w.memories {
		w.memories[i].had = slices.Clone(w.memories[i].had)
	}
	for i := range w.regions {
		r := &w.regions[i]
		r.purses, r.uses, r.sent = slices.Clone(r.purses), slices.Clone(r.uses), slices.Clone(r.sent)
		r.hand, r.until = slices.Clone(r.hand), slices.Clone(r.until)
	}
	admitted := make([][]int64, len(w.admitted))
	for i := range admitted {
		admitted[i] = slices.Clone(w.admitted[i])
	}
	w.admitted = admitted
	return w
}

// next yields all that can happen.
func (c *system) next(w world) iter.Seq2[string, world] {
	return func(yield func(string, world) bool) {
		on := true
		do := func(change func(*world), format string, args ...any) {
			if on {
				next := w.copied()
				change(&next)
				on = yield(fmt.Sprintf(format, args...), next)
			}
		}
		if w.now+1 < c.windows*c.ticks {
			do(func(w *world) { w.now++ }, "the clock shows %d", w.now+1)
		}
		if len(w.memories) <= c.crashes {
			do(c.follow, "another memory takes over")
		}
		for m := range w.memories {
			c.memorySteps(&w, m, do)
		}
		for r := range w.regions {
			c.regionSteps(&w, r, do)
		}
		for i, l := range w.mail {
			c.mailSteps(&w, i, l, do)
		}
	}
}

type step = func(change func(*world), format string, args ...any)

// follow begins another memory: it reads the record and writes it as its own.
func (c *system) follow(w *world) {
	w.version++
	w.memories = append(w.memories, memory{state: c.rules.succeed(w.record), version: w.version, had: make([]int64, len(c.groups))})
}

func (c *system) window(w *world) keys.Window {
	return keys.Window{Index: w.now / c.ticks, Pool: c.rules.pool(c.limit, c.slice*int64(c.regions)), Block: c.block}
}

// memorySteps are the writes of a memory.
func (c *system) memorySteps(w *world, i int, do step) {
	m := w.memories[i]
	switch {
	case m.arrived:
		do(func(w *world) {
			m := &w.memories[i]
			m.state.Saved, m.sent, m.arrived = m.writes, false, false
		}, "memory %d hears that its write arrived", i)
	case m.sent:
		do(func(w *world) { c.arrive(w, &w.memories[i]) }, "the write of memory %d arrives", i)
		do(func(w *world) { w.memories[i].sent = false }, "the write of memory %d is lost", i)
	case m.lost && !c.rules.old:
	default:
		wants, window := map[int]int64{}, c.window(w)
		for k, group := range c.groups {
			g := m.state.Take(window, group, m.granted(window.Index, k), keys.Ask{Min: 1, Want: 1})
			if g.Raise > 0 && (g.Lacks || c.hasty) {
				wants[group] = max(wants[group], g.Raise)
			}
		}
		if len(wants) > 0 {
			do(func(w *world) {
				m := &w.memories[i]
				m.writes, m.sent = c.rules.aside(m.state, window, wants), true
				if c.rules.early {
					m.state.Saved = m.writes
				}
			}, "memory %d writes", i)
		}
	}
}

// arrive compares and swaps the record.
func (c *system) arrive(w *world, m *memory) {
	if m.version != w.version && !c.rules.old {
		m.sent, m.lost = false, true
		return
	}
	w.version++
	w.record, m.version, m.arrived = m.writes, w.version, true
}

func (m *memory) granted(index int64, key int) int64 {
	if index != m.index {
		return 0
	}
	return m.had[key]
}

func (c *system) regionSteps(w *world, i int, do step) {
	r := w.regions[i]
	for k := range c.groups {
		if r.sent[k] < c.sends {
			do(func(w *world) {
				w.regions[i].sent[k]++
				w.mail = append(w.mail, letter{region: i, key: k, sent: w.now})
			}, "region %d asks for key %d", i, k)
		}
		p, units := c.rules.open(r.purses[k], w.now).Take(w.now, 1, 1)
		switch {
		case units == 0:
		case c.hands && k == 0:
			do(func(w *world) {
				r := &w.regions[i]
				r.purses[k], r.hand, r.until = p, append(r.hand, p.Index), append(r.until, p.Ends)
			}, "a process of region %d takes a unit", i)
		default:
			do(func(w *world) {
				w.regions[i].purses[k] = p
				w.admitted[k][w.now/c.ticks]++
			}, "region %d admits one of key %d", i, k)
		}
		if u, units := r.uses[k].Take(w.now/c.ticks, c.slice, 1, 1); units > 0 {
			do(func(w *world) {
				w.regions[i].uses[k] = u
				w.admitted[k][w.now/c.ticks]++
			}, "region %d admits one of its slice of key %d", i, k)
		}
		if w.drops < c.drops && (r.purses[k] != (keys.Purse{}) || r.uses[k] != (keys.Use{})) {
			do(func(w *world) {
				w.drops++
				r := &w.regions[i]
				r.purses[k], r.uses[k] = keys.Purse{}, c.rules.dropped(r.uses[k])
			}, "region %d drops key %d", i, k)
		}
	}
	if n := len(r.hand) - 1; n >= 0 {
		if w.now < r.until[n] {
			do(func(w *world) {
				r := &w.regions[i]
				r.hand, r.until = r.hand[:n], r.until[:n]
				w.admitted[0][w.now/c.ticks]++
			}, "a process of region %d admits one", i)
		}
		do(func(w *world) {
			r := &w.regions[i]
			r.purses[0] = c.rules.putBack(r.purses[0], w.now, r.hand[n])
			r.hand, r.until = r.hand[:n], r.until[:n]
		}, "a process of region %d gives a unit back", i)
	}
}

// mailSteps are what becomes of a letter. One that is lost is one that never arrives.
func (c *system) mailSteps(w *world, i int, l letter, do step) {
	without := func(w *world) { w.mail = slices.Delete(w.mail, i, i+1) }
	if l.answer {
		do(func(w *world) {
			without(w)
			p := &w.regions[l.region].purses[l.key]
			*p = c.rules.fill(*p, keys.Answer{
				Index: l.index, Ends: l.sent + l.life, Units: l.units, Remaining: l.remaining, Least: 1,
			}, w.now, l.life)
		}, "region %d hears of %d units of key %d", l.region, l.units, l.key)
		return
	}
	window := c.window(w)
	for at := range w.memories {
		m := &w.memories[at]
		had := m.granted(window.Index, l.key)
		g := c.rules.take(m.state, window, c.groups[l.key], had, keys.Ask{Min: 1, Want: c.limit})
		if g.Lacks {
			continue
		}
		do(func(w *world) {
			without(w)
			m := &w.memories[at]
			if m.index != window.Index {
				m.index, m.had = window.Index, make([]int64, len(c.groups))
			}
			m.had[l.key] += g.Units
			l.answer, l.index, l.units, l.remaining = true, window.Index, g.Units, g.Remaining
			l.life = (window.Index+1)*c.ticks - w.now
			w.mail = append(w.mail, l)
		}, "memory %d grants %d units of key %d", at, g.Units, l.key)
	}
}

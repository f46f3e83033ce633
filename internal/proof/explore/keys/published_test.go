package keys_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/keys"
)

// A published is the module GaleKeyedBlocks: messages and writes take no time, and a region
// leases a batch of a key when it has none of it left.
type published struct {
	keys, regions       int
	limit, batch, block int64
	own                 int64 // keys that a memory counts by themselves
	changes             int   // memories that crash or hand over, at most
	together            bool  // all counters are of one group

	// Each of these takes a rule away.
	forgets, overtaken, lowers, unnoted, apart bool
	spare, forfeit                             int64 // by how much the bounds are lowered

	counters []string // hashes of the keys and, last, of the counter that further keys share
}

// A place is a state of it.
type place struct {
	window   int64
	memories []mind // only the last one's writes succeed
	record   keys.Aside
	purses   [][]keys.Purse // by region and key
	admitted []int64        // by key
}

// A mind is a memory of the coordinator.
type mind struct {
	before, saved keys.Aside
	granted       []keys.KeyAsk // in the open window, in order
	ended         bool          // it handed over
}

// hashes returns those of n counters whose groups are one, or differ.
func hashes(n int, together bool) (some []string) {
	groups := map[int]bool{}
	for i := 0; len(some) < n; i++ {
		hash := fmt.Sprint("k", i)
		group := keys.GroupOf(hash)
		if len(some) == 0 || groups[group] == together {
			some, groups[group] = append(some, hash), true
		}
	}
	return some
}

func (p *published) open(s *place) keys.Window {
	return keys.Window{Index: s.window, Pool: p.limit, Block: p.block, Keys: p.own}
}

// book returns the book of a memory, by granting again what it granted.
func (p *published) book(s *place, m int) *keys.Book {
	w := p.open(s)
	b := &keys.Book{Share: func(string, int) string { return p.counters[p.keys] }}
	b.Before = s.memories[m].before
	w.Block = 0 // as all of it was set aside
	for _, a := range s.memories[m].granted {
		if g := b.Take(w, a); g.Units != a.Want {
			panic("a grant cannot be made again")
		}
	}
	b.Saved = s.memories[m].saved
	return b
}

func (p *published) ask(k int) keys.KeyAsk {
	return keys.KeyAsk{Hash: p.counters[k], Ask: keys.Ask{Min: p.batch, Want: p.batch}}
}

func (p *published) model() explore.Model[place, string] {
	p.counters = hashes(p.keys+1, p.together)
	first := place{window: 10, memories: make([]mind, 1), admitted: make([]int64, p.keys)}
	for range p.regions {
		first.purses = append(first.purses, make([]keys.Purse, p.keys))
	}
	return explore.Model[place, string]{Init: []place{first}, Next: p.next, Encode: p.encode, Check: p.check, Bound: 100_000}
}

func (s *place) copied() place {
	next := *s
	next.memories, next.admitted, next.purses = slices.Clone(s.memories), slices.Clone(s.admitted), slices.Clone(s.purses)
	for r := range next.purses {
		next.purses[r] = slices.Clone(next.purses[r])
	}
	return next
}

func (p *published) next(s place) iter.Seq2[string, place] {
	return func(yield func(string, place) bool) {
		on := true
		do := func(next place, ok bool, format string, args ...any) {
			on = on && (!ok || yield(fmt.Sprintf(format, args...), next))
		}
		for r := range p.regions {
			for k := range p.keys {
				next, ok := p.serve(&s, r, k)
				do(next, ok, "region %d serves key %d", r, k)
				for m := range s.memories {
					next, ok := p.lease(&s, m, r, k)
					do(next, ok, "region %d leases key %d of memory %d", r, k, m)
				}
			}
		}
		for m := range s.memories {
			for some := 1; some < 1<<p.keys; some++ {
				next, ok := p.reserve(&s, m, some)
				do(next, ok, "memory %d sets keys %b aside", m, some)
			}
		}
		if len(s.memories) <= p.changes {
			do(p.begin(&s, s.record), true, "another memory begins")
			last := len(s.memories) - 1
			next := p.begin(&s, p.book(&s, last).Last())
			next.memories[last].ended = true
			do(next, true, "a memory hands over")
		}
		next := s.copied()
		next.window++
		for m := range next.memories {
			next.memories[m].granted = nil
		}
		clear(next.admitted)
		do(next, true, "the window ends")
	}
}

func (p *published) serve(s *place, r, k int) (place, bool) {
	purse, units := s.purses[r][k].Take(s.window, 1, 1)
	if units == 0 {
		return place{}, false
	}
	next := s.copied()
	next.purses[r][k] = purse
	next.admitted[k]++
	return next, true
}

func (p *published) lease(s *place, m, r, k int) (place, bool) {
	purse := s.purses[r][k]
	if purse.Open(s.window) && purse.Units > 0 || s.memories[m].ended {
		return place{}, false
	}
	b := p.book(s, m)
	if p.unnoted {
		b.Saved.Shared = 1
	}
	g := b.Take(p.open(s), p.ask(k))
	if g.Units == 0 {
		return place{}, false
	}
	next := s.copied()
	next.memories[m].granted = append(slices.Clip(next.memories[m].granted), p.ask(k))
	next.purses[r][k] = purse.Fill(keys.Answer{Index: s.window, Ends: s.window + 1, Units: g.Units, Remaining: g.Remaining})
	return next, true
}

// reserve has a memory set units aside of some keys, a bit for each, that all lack them.
func (p *published) reserve(s *place, m, some int) (place, bool) {
	last := m == len(s.memories)-1
	if s.memories[m].ended || !last && !p.overtaken {
		return place{}, false
	}
	b := p.book(s, m)
	for k := range p.keys {
		if some&(1<<k) != 0 && !b.Take(p.open(s), p.ask(k)).Lacks {
			return place{}, false
		}
	}
	if p.lowers {
		b.Saved.Marks = nil
	}
	next := s.copied()
	next.memories[m].saved = b.Next()
	if last {
		next.record = next.memories[m].saved
	}
	return next, true
}

// begin has a memory begin with a record.
func (p *published) begin(s *place, record keys.Aside) place {
	next := s.copied()
	next.record = record
	if p.forgets {
		record = keys.Aside{}
	}
	state := keys.Succeed(record)
	if p.apart {
		state.Before.Shared = 0
	}
	next.memories = append(next.memories, mind{before: state.Before, saved: state.Saved})
	return next
}

// had returns what a memory granted of each counter.
func (p *published) had(s *place, m int) []int64 {
	had, last := make([]int64, p.keys+1), p.book(s, m).Last()
	for c, hash := range p.counters {
		group := keys.GroupOf(hash)
		if had[c] = last.Of(p.open(s), group) - s.memories[m].before.Of(p.open(s), group); p.together { // every key has a counter
			had[c] = 0
			for _, a := range s.memories[m].granted {
				if a.Hash == hash {
					had[c] += a.Want
				}
			}
		}
	}
	return had
}

// check holds Overshoot, Covered and Forfeit.
func (p *published) check(s place) error {
	for k, n := range s.admitted {
		if n > p.limit-p.spare {
			return fmt.Errorf("%d admitted of key %d", n, k)
		}
	}
	if p.forgets || p.overtaken || p.lowers || p.unnoted || p.apart || p.spare > 0 {
		return nil
	}
	last := len(s.memories) - 1
	granted, busiest, crashes := make([]int64, p.keys+1), make([]int64, p.keys+1), int64(0)
	for m := range s.memories {
		had := p.had(&s, m)
		for c := range had {
			granted[c] += had[c]
			switch {
			case m == last:
			case p.together:
				busiest[c] += slices.Max(had)
			default:
				busiest[c] += had[c]
			}
		}
		if m < last && !s.memories[m].ended {
			crashes++
		}
	}
	for c, hash := range p.counters {
		group := keys.GroupOf(hash)
		if granted[c] > s.record.Of(p.open(&s), group) {
			return errors.New("units are granted that are not set aside")
		}
		if n := s.memories[last].before.Of(p.open(&s), group) - busiest[c]; n > max(0, crashes*max(p.batch, p.block)-p.forfeit) {
			return fmt.Errorf("%d units of a counter are forfeited by %d crashes", n, crashes)
		}
	}
	return nil
}

// encode writes the variables of the module.
func (p *published) encode(b []byte, s place) []byte {
	aside := func(a keys.Aside) {
		if a.Index != s.window {
			a = keys.Aside{}
		}
		b = binary.AppendVarint(b, a.Base)
		b = binary.AppendVarint(b, int64(a.Shared))
		b = binary.AppendVarint(b, int64(len(a.Marks)))
		for _, mark := range a.Marks {
			b = binary.AppendVarint(b, int64(mark.Group))
			b = binary.AppendVarint(b, mark.Units)
		}
	}
	aside(s.record)
	for m := range s.memories {
		aside(s.memories[m].before)
		aside(s.memories[m].saved)
		for _, n := range p.had(&s, m) {
			b = binary.AppendVarint(b, n)
		}
		b = fmt.Append(b, s.memories[m].ended)
	}
	for _, purses := range s.purses {
		for _, purse := range purses {
			if !purse.Open(s.window) {
				purse.Units = 0
			}
			b = binary.AppendVarint(b, purse.Units)
		}
	}
	for _, n := range s.admitted {
		b = binary.AppendVarint(b, n)
	}
	return b
}

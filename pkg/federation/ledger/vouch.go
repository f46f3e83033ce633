package ledger

import (
	"cmp"
	"slices"
)

// A memory that begins cannot know what others before it granted of the open window. The
// members can: each one's cluster remembers the first memory that it met, and was granted
// nothing by others before. Once all of them say so of this memory, none was before it.
//
// Each says which ones it takes for members. Otherwise one that was granted units by a
// memory before, and is listed no more by some, would not be asked.

// A Vouch is what a member said of the present memory.
type Vouch struct {
	Member string
	List   int64 // Command.List
}

// vouch notes whether a member vouches for the memory, while that matters.
func (s *State) vouch(c *Command) {
	if s.start() >= c.Memory.Since {
		return
	}
	i, found := slices.BinarySearchFunc(s.Vouches, c.Member, Vouch.compare)
	next := slices.Clone(s.Vouches)
	if found {
		next = slices.Delete(next, i, i+1)
	}
	if c.List != 0 && c.Born == c.Memory.Term {
		next = slices.Insert(next, i, Vouch{Member: c.Member, List: c.List})
	}
	s.Vouches = next
}

// vouched reports whether every member vouches for the memory, and means the same ones as
// the member of c by all. Vouches for the memory before say nothing of it.
func (s *State) vouched(p *Params, c *Command) bool {
	if s.Term != c.Memory.Term {
		return false
	}
	for _, m := range p.Members {
		i, found := slices.BinarySearchFunc(s.Vouches, m.Name, Vouch.compare)
		if !found || s.Vouches[i].List != c.List {
			return false
		}
	}
	return true
}

func (v Vouch) compare(member string) int { return cmp.Compare(v.Member, member) }

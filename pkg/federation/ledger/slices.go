package ledger

// A slice is handed over between members without trust in any clock but the
// ledger's. It grows at once, for windows that begin later, while all slices fit
// beside what is granted. It shrinks when the member says that it knows: by a
// command that was sent after an answer of a window in which the larger one was not
// sent any more. Commands that were sent before may arrive at any time.

// slice returns what a member is meant to use without asking.
func (p *Params) slice(m Member) int64 {
	if p.Slices {
		return m.Kept
	}
	return 0
}

// uses returns what a member may be using without asking of this window or the next.
func (t *Standing) uses() int64 { return max(t.Slice, t.Next) }

// sliced returns the slices of a member; for one never heard of, what a memory before
// may have sent it.
func (s *State) sliced(p *Params, m Member) int64 {
	if i, ok := s.standing(m.Name); ok {
		return s.Standings[i].uses()
	}
	return p.slice(m)
}

// taken returns what is not free of the open window.
func (s *State) taken(p *Params) int64 {
	sum := s.Before + s.granted()
	for _, t := range s.Standings {
		sum += t.uses()
	}
	for _, m := range p.Members {
		if _, ok := s.standing(m.Name); !ok {
			sum += p.slice(m)
		}
	}
	return sum
}

// spare returns what slices may grow by. Units set aside may be granted without
// asking again.
func (s *State) spare(p *Params) int64 {
	idle := max(0, s.Reserved-s.Before-s.granted())
	return max(0, p.least(s.Limit)-s.taken(p)-idle)
}

// newcomer returns the standing of a member that this memory did not hear of. A
// memory before sent it what it says that it heard.
func (s *State) newcomer(p *Params, m Member, c *Command) Standing {
	meant, said := p.slice(m), c.Slice
	if said == NoSlice {
		said = 0
	}
	slice := max(min(said, s.Limit), min(meant, max(0, p.least(s.Limit)-s.taken(p)+meant)))
	return Standing{Member: m.Name, Slice: slice, Next: slice, Told: s.Index}
}

// handOver brings a member's slice nearer to what is meant.
func (s *State) handOver(p *Params, t *Standing, meant int64, c *Command) {
	switch {
	case meant > t.Next:
		t.Next = max(t.Next, min(meant, t.uses()+s.spare(p)))
	case meant < t.Next && c.Epoch.Index > t.Told:
		t.Next = max(meant, min(t.Next, c.Slice))
	}
}

// promise returns what a member is sent of its slice, and notes when it was sent all
// that it has. The list is copied.
func (s *State) promise(i int, meant int64) int64 {
	t := s.Standings[i]
	if meant < t.Next || t.Told == s.Index || t.Next == 0 {
		return min(meant, t.Next)
	}
	standings := make([]Standing, len(s.Standings))
	copy(standings, s.Standings)
	standings[i].Told = s.Index
	s.Standings = standings
	return t.Next
}

// dismiss answers one that is not a member. If it was one it may still use its slice.
func (s *State) dismiss(p *Params, c *Command) Grant {
	m := Member{Name: c.Member}
	if _, ok := s.standing(c.Member); ok {
		s.attend(p, m, c)
	}
	return s.answer(p, m, c, Unknown)
}

package membudget

import (
	"slices"
	"time"
)

// A candidate is a connection that may give way.
type candidate struct {
	connection *Connection
	state      state
	bytes      int64
}

// reclaim closes connections that hold no request until n bytes are free for one of them, of one
// address only unless that is nil, and reports whether there were any.
func (b *Budget) reclaim(n int64, by *Connection, only *peer) bool {
	leaving := pick(b.candidates(by, only), n)
	made := false
	for _, c := range leaving {
		if c.state.phase() == idling && c.connection.holder.Pending() {
			continue // it is about to be a request
		}
		if c.connection.state.CompareAndSwap(int64(c.state), int64(gone)) {
			b.closed[c.state.phase()].Add(1)
			c.connection.holder.Yield(c.state.phase() == inHead)
			made = true
		}
	}
	return made
}

func (b *Budget) candidates(by *Connection, only *peer) []candidate {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []candidate
	for c := range b.open {
		s := state(c.state.Load())
		if c == by || s.phase() > inHead || only != nil && c.peer != only {
			continue
		}
		bytes := c.taken[Connections].Load() + c.taken[Heads].Load()
		if bytes > 0 { // else it is not in yet, or is gone
			all = append(all, candidate{c, s, bytes})
		}
	}
	return all
}

// pick returns which of the candidates give way for n bytes: idle ones before those in the
// middle of a head, always one of the address that has the most of them, and of these the one
// that has been so for the longest.
func pick(all []candidate, n int64) (leaving []candidate) {
	for p := idling; p <= inHead; p++ {
		byPeer := map[*peer][]candidate{}
		for _, c := range all {
			if c.state.phase() == p {
				byPeer[c.connection.peer] = append(byPeer[c.connection.peer], c)
			}
		}
		groups := make([][]candidate, 0, len(byPeer))
		for _, group := range byPeer {
			slices.SortFunc(group, func(a, b candidate) int { return int(a.since() - b.since()) })
			groups = append(groups, group)
		}
		for n > 0 && len(groups) > 0 {
			most := largest(groups)
			c := groups[most][0]
			leaving = append(leaving, c)
			n -= c.bytes
			if groups[most] = groups[most][1:]; len(groups[most]) == 0 {
				groups = slices.Delete(groups, most, most+1)
			}
		}
	}
	return leaving
}

// largest returns the group of the most candidates, and of several the one that has waited for
// the longest.
func largest(groups [][]candidate) (most int) {
	for i, g := range groups {
		if m := groups[most]; len(g) > len(m) || len(g) == len(m) && g[0].since() < m[0].since() {
			most = i
		}
	}
	return most
}

func (c candidate) since() time.Duration { return time.Duration(c.state >> phaseBits) }

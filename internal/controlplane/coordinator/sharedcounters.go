package coordinator

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A sharedCounters says on which counters the values of a limit that have none of their own are
// counted in one span. There are ways of them, and the hash of a value chooses one. Where
// there is no room for that, the first stands in for it, which always has room. What was
// chosen in a span stays so for it: a value that was granted from one counter gets no
// second budget in the same window.
type sharedCounters struct {
	ways   int
	chosen map[int]choice // by what the hash chooses
	places int            // counters but the first
	full   bool           // one is shared by values that asked for a counter of their own
}

// A choice is which counter is used for one of the shared counters.
type choice struct {
	at int
	// full says that a value was sent there that asked for a counter of its own. Otherwise
	// sidecars asked for the shared one.
	full bool
}

func newSharedCounters(ways int) sharedCounters {
	return sharedCounters{ways: max(1, ways), chosen: map[int]choice{}}
}

// named returns which of the shared counters has the hash, and false when none has.
func (s *sharedCounters) named(hash string) (i int, ok bool) {
	i, ok = store.SharedBy(hash)
	return i, ok && i < max(1, s.ways)
}

// isFull reports whether the values with the hash may have been granted from a shared counter.
func (s *sharedCounters) isFull(hash string) bool { return s.chosen[store.ShareOf(hash, s.ways)].full }

// isMoved reports whether the first counter stood in for another.
func (s *sharedCounters) isMoved(i int) bool {
	c, ok := s.chosen[i]
	return ok && c.at != i
}

// choose has the counter be used.
func (s *sharedCounters) choose(i int, c choice) {
	if _, ok := s.chosen[i]; !ok && c.at != 0 {
		s.places++
	}
	s.chosen[i] = c
	s.full = s.full || c.full
}

// chosen returns which counter is used for a shared one, and false when that is still open.
func (c *counters) chosen(l *published, h *hashes, i int, now limiter.Instant) (choice, bool) {
	if known, ok := h.shared.chosen[i]; ok || !h.inherited {
		return known, ok
	}
	for _, at := range []int{i, 0} {
		if c.quota.held.Counts(store.Key{Scope: l.scope, Hash: store.SharedHash(at)}, now) {
			return choice{at: at, full: true}, true // any value may have been granted from it
		}
	}
	return choice{}, false
}

// share returns the counter that is used for a shared one, which is full when a value asked
// for one of its own.
func (c *counters) share(l *published, h *hashes, i int, full bool, cmd limiter.Command, now limiter.Instant) string {
	use, ok := c.chosen(l, h, i, now)
	if !ok && i != 0 && c.quota.hasShared(store.Key{Scope: l.scope, Hash: store.SharedHash(i)}) {
		use.at = i
	}
	if use.full = use.full || full; cmd.Op == limiter.Take {
		h.shared.choose(i, use)
	}
	return store.SharedHash(use.at)
}

// takesBack reports whether units that a sidecar returns to a shared counter were granted by
// that.
func (c *counters) takesBack(l *published, h *hashes, i int, cmd limiter.Command, now limiter.Instant) bool {
	if use, ok := c.chosen(l, h, i, now); ok && use.at != i {
		return false
	}
	return !h.sharedBefore.isMoved(i) || !grantedBefore(cmd, h.begins)
}

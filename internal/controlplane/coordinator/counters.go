package coordinator

import (
	"math"
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// fleetKeys bounds how many values of a limit have counters of their own in one span,
// unless the policy lets a single sidecar track more.
const fleetKeys = 100_000

// counters bounds how many counters each limit has in the store, and all limits
// together, so that no tenant can fill the memory that all share. The bound is two for each
// place, one for each value with rates of its own, and two for each that values share.
type counters struct {
	mu      sync.Mutex
	byScope map[store.Scope]*hashes
	quota   keyQuota
}

// hashes are the values of a limit that have counters of their own. Time is cut into
// spans, the longest windows of the limit. A place is taken in one span, and free in
// the next for the value that comes first; its counter is dropped a span later.
type hashes struct {
	begins, ends limiter.Instant // of the span
	gone         limiter.Instant // the counters of the span are, too
	stored       limiter.Instant // when the last span was gone in which the limit drew from no budget
	now          map[string]struct{}
	before       map[string]struct{} // had one in the span before, and were not asked for in this one
	// shared are the counters of the others, and sharedBefore those of the span before.
	shared, sharedBefore sharedCounters
	// inherited says that the leader before may have granted in the span. A value that was
	// granted from a counter of its own has it in the store; one that has none may have been
	// granted from a shared counter.
	inherited bool
}

// newCounters returns the counters of a term whose store holds them, most for all limits.
func newCounters(in heldCounters, most int) *counters {
	return &counters{
		byScope: map[store.Scope]*hashes{},
		quota:   keyQuota{most: most, held: in, takenBy: map[string]int{}},
	}
}

// of returns the hash of the counter that a command of a value's is applied to, by the number
// of sidecars that ask. It is false for a return that may be of another counter.
func (c *counters) of(l *published, hash string, cmd limiter.Command, sidecars func() int, now limiter.Instant) (string, bool) {
	_, own := l.own[hash]
	if hash == "" || own && l.budget != nil {
		return hash, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hashesOf(l, now)
	size := h.size()
	defer func() { c.quota.take(l.scope.Namespace, h.size()-size) }()
	h.advance(l, now)
	if l.budget == nil {
		h.stored = h.gone
	}
	if own {
		return hash, true
	}
	if i, ok := h.shared.named(hash); ok {
		if cmd.Op == limiter.Return {
			return hash, c.takesBack(l, h, i, cmd, now)
		}
		return c.share(l, h, i, false, cmd, now), true
	}
	_, known := h.now[hash]
	if known && cmd.Op != limiter.Return {
		return hash, true
	}
	_, knew := h.before[hash]
	knew = knew || h.inherited && c.quota.held.Counts(store.Key{Scope: l.scope, Hash: hash}, now)
	i := store.ShareOf(hash, h.shared.ways)
	use, _ := c.chosen(l, h, i, now)
	switch {
	case cmd.Op == limiter.Return:
		before := h.sharedBefore.isFull(hash) || h.inherited && use.full
		return hash, (known || knew || !use.full) && (!before || !grantedBefore(cmd, h.begins))
	case !knew && (use.full || !h.hasPlace(l.most, sidecars) || !c.quota.has(store.Key{Scope: l.scope, Hash: hash})):
		return c.share(l, h, i, true, cmd, now), true
	case cmd.Op == limiter.Take:
		delete(h.before, hash)
		h.now[hash] = struct{}{}
	}
	return hash, true
}

// hashesOf returns those of a limit.
func (c *counters) hashesOf(l *published, now limiter.Instant) *hashes {
	h := c.byScope[l.scope]
	if h == nil {
		h = &hashes{}
		c.byScope[l.scope] = h
		h.advance(l, now)
		h.inherited = true
	}
	return h
}

// storedUntil returns when all windows are over that the store granted values of a limit from before the limit
// drew from a budget, 0 when it did all the term.
func (c *counters) storedUntil(scope store.Scope) limiter.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.byScope[scope]; h != nil {
		return h.stored
	}
	return 0
}

// values is how many values have counters.
func (h *hashes) values() int { return len(h.now) + len(h.before) }

// size is how many places the limit takes in the room.
func (h *hashes) size() int { return h.values() + h.shared.places + h.sharedBefore.places }

// hasPlace reports whether there is a place left: as many as the sidecars may track, most
// each.
func (h *hashes) hasPlace(most int, sidecars func() int) bool {
	if len(h.now) < most && h.values() < 2*most {
		return true
	}
	places := min(most*max(1, sidecars()), max(most, fleetKeys))
	return len(h.now) < places && h.values() < 2*places
}

// advance begins the next span when the last one is over. An edit of the windows waits
// until then, as it does at the store, and one of the number of shared counters, too.
func (h *hashes) advance(l *published, now limiter.Instant) {
	if now < h.ends {
		return
	}
	h.before, h.sharedBefore = h.now, h.shared
	if now >= h.gone {
		h.before, h.sharedBefore = nil, sharedCounters{}
	}
	span := l.span.WindowAt(now)
	h.begins, h.ends = max(h.ends, span.Start()), span.End()
	h.gone = h.ends.Add(l.span.Window)
	h.now, h.shared, h.inherited = map[string]struct{}{}, newSharedCounters(l.shared), false
}

// grantedBefore reports whether a return may be of units that were granted before the
// instant.
func grantedBefore(c limiter.Command, at limiter.Instant) bool {
	for _, w := range c.Windows.Slice() {
		if w.Start() < at {
			return true
		}
	}
	return c.Windows.N == 0 && c.At < at
}

// sweep forgets limits whose counters are all gone.
func (c *counters) sweep(now limiter.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for scope, h := range c.byScope {
		if now >= h.gone {
			c.quota.take(scope.Namespace, -h.size())
			delete(c.byScope, scope)
		}
	}
}

// sharing returns the limits whose values share counters, because there is no room
// for one more.
func (c *counters) sharing(now limiter.Instant) (all []store.Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for scope, h := range c.byScope {
		if h.shared.full && now < h.ends {
			all = append(all, scope)
		}
	}
	return all
}

const (
	// keyBytes is what a key takes of the heap while it is handed over, and its part of
	// what else is there.
	keyBytes = 860
	// usualKeys is how many there is room for when the heap has no limit: as many as in
	// the container of 512Mi that the chart makes.
	usualKeys = 500_000
)

// keysIn returns for how many keys there is room in a heap of that many bytes.
func keysIn(heap int64) int {
	if heap == math.MaxInt64 {
		return usualKeys
	}
	return int(heap / keyBytes)
}

// A keyQuota bounds how many values of all limits have counters of their own, since all
// share one memory.
type keyQuota struct {
	most    int
	held    heldCounters
	taken   int
	takenBy map[string]int // by namespace
}

// heldCounters are the counters in memory, among them what the leader before handed over.
type heldCounters interface {
	Len() int
	Has(key store.Key) bool
	Counts(key store.Key, now limiter.Instant) bool
}

// take enters that a namespace takes n places more, or, when n is negative, fewer.
func (r *keyQuota) take(namespace string, n int) {
	r.taken += n
	if r.takenBy[namespace] += n; r.takenBy[namespace] == 0 {
		delete(r.takenBy, namespace)
	}
}

// has reports whether there is room for a counter. A namespace has room while it takes
// less than what is left. So one alone takes half, and there is always some left for the
// next (dynamic thresholds; Choudhury and Hahne, IEEE/ACM Transactions on Networking, 1998).
// A counter that is held needs none: what it granted counts there only.
func (r *keyQuota) has(key store.Key) bool {
	return r.held.Has(key) || r.takenBy[key.Scope.Namespace] < r.left()
}

// hasShared reports whether there is room for a counter that values share. A namespace has
// some for these when it has none for others, for it may take twice what is left.
func (r *keyQuota) hasShared(key store.Key) bool {
	return r.held.Has(key) || r.takenBy[key.Scope.Namespace] < 2*r.left()
}

func (r *keyQuota) left() int { return r.most - max(r.taken, r.held.Len()) }

// A sharedCounters says on which counters the values of a limit that have none of their own are
// counted in one span. There are ways of them, and the hash of a value chooses one. Where
// there is no room for that, the first stands in for it, which always has room. The choice
// holds for the span: a value that was granted from one counter gets no second budget in
// the same window.
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

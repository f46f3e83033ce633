package twotier

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A view is what is known of the time of the store that keeps a counter.
type view struct {
	clock offset
	seen  limiter.Instant // when the store was last heard of
	// floor is an instant by which all windows had ended in which a share was admitted
	// that no key remembers. A clock that shows less was set back.
	floor limiter.Instant
	// Until the own instant swapped another store may have granted units of the windows
	// that were open; past when there was none.
	swapped  int64
	promised promise
}

// granted returns what is known of the store's time: it was last heard of when it may have
// granted units of the counter. While only the part that the counter is in is away,
// replies to the others do not advance that.
func (g *Gate) granted(key store.Key) view {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := view{clock: g.offset, seen: g.seen, floor: g.floor, swapped: past, promised: g.alone.promised}
	if d := g.doorOf(key); d != nil {
		v.seen = d.seen
	}
	return v
}

// forgets notes the floor of what a key forgets.
func (g *Gate) forgets(floor limiter.Instant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.floor = max(g.floor, floor)
}

// behind returns how long the store's clock takes, from a time that it reported, until
// it shows again what it had shown when shares were admitted that no key remembers. The
// clock was set back, and what the store grants meanwhile may be of the same windows.
func (v view) behind(now limiter.Instant) limiter.Micros { return max(0, v.floor.Sub(now)) }

package twotier

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A storeTime is what is known of the time of the store that keeps a counter.
type storeTime struct {
	clock clockOffset
	seen  limiter.Instant // when the store was last heard of
	// floor is an instant by which all windows had ended in which a share was admitted
	// that no key remembers. A clock that shows less was set back.
	floor limiter.Instant
	// Until the local instant swapped another store may have granted units of the windows
	// that were open; past when there was none.
	swapped  int64
	promised promise
}

// storeTime returns what is known of the store's time: it was last heard of when it may have
// granted units of the counter. While only the part that the counter is in is away,
// replies to the others do not advance that.
func (b *Breaker) storeTime(key store.Key) storeTime {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := storeTime{clock: b.offset, seen: b.seen, floor: b.floor, swapped: past, promised: b.local.promised}
	if c := b.partCircuit(key); c != nil {
		v.seen = c.seen
	}
	return v
}

// raiseFloor notes the floor of what a key forgets.
func (b *Breaker) raiseFloor(floor limiter.Instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.floor = max(b.floor, floor)
}

// behind returns how long the store's clock takes, from a time that it reported, until
// it shows again what it had shown when shares were admitted that no key remembers. The
// clock was set back, and what the store grants meanwhile may be of the same windows.
func (v storeTime) behind(now limiter.Instant) limiter.Micros { return max(0, v.floor.Sub(now)) }

package twotier

import "github.com/weir-dev/weir/pkg/limiter"

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

// behind returns how long the store's clock takes, from a time that it reported, until
// it shows again what it had shown when shares were admitted that no key remembers. The
// clock was set back, and what the store grants meanwhile may be of the same windows.
func (v storeTime) behind(now limiter.Instant) limiter.Micros { return max(0, v.floor.Sub(now)) }

package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An Override gives one value of a key a limit of its own, in the windows of all.
type Override struct {
	Hash  string // of the value, as store.HashValue
	Limit int64  // units per window, instead of Params.Limit
	// Block is how many units of it are set aside at once, instead of Params.Block.
	Block int64
}

func (o Override) compare(hash string) int { return cmp.Compare(o.Hash, hash) }

// OverrideOf returns that of the value with the hash, and false when it has none. Overrides are
// ordered by hash.
func OverrideOf(overrides []Override, hash string) (Override, bool) {
	i, ok := slices.BinarySearchFunc(overrides, hash, Override.compare)
	if !ok {
		return Override{}, false
	}
	return overrides[i], true
}

// LimitOf returns the limit of the value with the hash.
func (p *Params) LimitOf(hash string) int64 {
	if o, ok := OverrideOf(p.Overrides, hash); ok {
		return o.Limit
	}
	return p.Limit
}

// least returns the smallest limit that a value has where others have the limit: slices are used of
// each value, so they have to fit into that also while they change hands.
func (p *Params) least(limit int64) int64 {
	for i := range p.Overrides {
		limit = min(limit, p.Overrides[i].Limit)
	}
	return limit
}

// validateOverrides requires that slices, which members use of each value without asking, fit
// into every limit.
func (p *Params) validateOverrides() error {
	if n := len(p.Overrides); n > 0 && p.Keys == 0 || n > MaxOverrides {
		return invalid("overrides", "has %d entries: name up to %d values of a key, and none without one", n, MaxOverrides)
	}
	var slice int64
	if p.Slices {
		for _, m := range p.Members {
			slice += m.Kept
		}
	}
	for i, o := range p.Overrides {
		at := fmt.Sprintf("overrides[%d].", i)
		switch {
		case !named(o.Hash):
			return invalid(at+"hash", "has %d bytes: choose 1 to %d", len(o.Hash), MaxName)
		case i > 0 && o.Hash <= p.Overrides[i-1].Hash:
			return invalid(at+"hash", "%q is not after %q: order the values by hash, each once", o.Hash, p.Overrides[i-1].Hash)
		case o.Limit < 1 || o.Limit > limiter.MaxLimit:
			return outside(at+"limit", o.Limit, 1, limiter.MaxLimit)
		case o.Block < 0 || o.Block > limiter.MaxLimit:
			return outside(at+"block", o.Block, 0, limiter.MaxLimit)
		case o.Limit < slice:
			return invalid(at+"limit", "is %d, but members use %d of each value without asking: raise it to that, or lower what they keep", o.Limit, slice)
		}
	}
	return nil
}

package store

import "github.com/weir-dev/weir/pkg/limiter"

// Facts are what a store says of itself at one moment.
type Facts struct {
	Now limiter.Instant // the store's clock; of several servers the newest
	// Oldest is what all of its clocks had reached: of several servers the oldest.
	Oldest limiter.Instant
	// Volatile and Durable are how the store keeps counters of each retention.
	Volatile, Durable Keeping
	// Lossless says that a restart loses nothing that the store acknowledged to a
	// durable counter.
	Lossless bool
}

// Of returns how the store keeps a counter of the retention.
func (f Facts) Of(r limiter.Retention) Keeping {
	if r.Durable {
		return f.Durable
	}
	return f.Volatile
}

// Keeping is how a store keeps the counters of one retention.
type Keeping struct {
	Guarantee Guarantee
	// Memories are those that are uninterrupted now, one a server or more; at most
	// limiter.MaxBorn, or none when there are more. A limit that is put in force from
	// now on was born in them.
	Memories []limiter.MemoryID
}

package pool

import "github.com/weir-dev/weir/pkg/limiter"

// Params say how a pool is divided. All holders of a pool have to work by the same.
type Params struct {
	Min, Max   int64 // bounds of the fleet's limit, 1 ≤ Min ≤ Max ≤ MaxLimit
	Initial    int64 // the limit before anybody inferred one, from Min to Max
	Aggregate  Aggregate
	Allocation Allocation
	Handoff    Handoff
	// TTL is how long a share lasts from the beat that it answers, positive. The
	// coordinator counts it by its own clock from when the beat reached it, and the
	// holder by its own from when it sent the beat.
	TTL limiter.Micros
	// Quarantine is how long a memory that is not the first of its pool grants no
	// more than holders already use: the longest TTL that a share of the memory before
	// may have had.
	Quarantine limiter.Micros
	Generation int64 // of the configuration; an older one does not change what a newer one set
}

// MaxLimit is the largest limit of a pool.
const MaxLimit = 1_000_000

// Aggregate says how the fleet's limit follows from the limits that holders infer.
// It is never their sum: each infers what the one backend bears.
type Aggregate uint8

// The aggregates.
const (
	Median Aggregate = iota // the lower median: one odd holder moves nothing
	Min                     // the smallest: the most careful holder decides
)

// Allocation says what share of the limit a holder is meant to have.
type Allocation uint8

// The allocations.
const (
	EqualSplit         Allocation = iota // the same for all
	DemandProportional                   // what idle holders leave is split over those that use theirs up
)

// Handoff says when what one holder gave up may be granted to another.
type Handoff uint8

// The handoffs.
const (
	// Acknowledged waits until the holder confirmed the smaller share and has no more
	// than it in flight: the bound on what is in flight holds at every instant.
	Acknowledged Handoff = iota
	// Occupancy waits for what was reported in flight only. Shares then never add up
	// to more than the limit; what is in flight may exceed it for about a heartbeat.
	Occupancy
)

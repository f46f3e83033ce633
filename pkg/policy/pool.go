package policy

import (
	"cmp"
	"strings"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Pool is one ConcurrencyPool, resolved: the requests that its pods have in
// flight together stay within one limit, which follows from their latency.
type Pool struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"` // orders the versions of the name; coordinators refuse lower ones

	Mode Mode `json:"mode"`
	// Coordinator is what divides the limit: the leading controller, or a program in
	// the store.
	Coordinator Store `json:"coordinator"`

	Limit      LimitRange     `json:"limit"`
	Algorithm  LimitAlgorithm `json:"algorithm"`
	Aggregate  Aggregate      `json:"aggregate"`
	Allocation Allocation     `json:"allocation"`
	Handoff    Handoff        `json:"handoff"`
	Heartbeat  Heartbeat      `json:"heartbeat"`
	SelfFence  SelfFence      `json:"selfFence"`
	// OnCoordinatorOutage decides while the coordinator does not answer.
	OnCoordinatorOutage OutageAction `json:"onCoordinatorOutage"`

	Match      []Match     `json:"match,omitempty"`      // one must match for a request to need a slot; none means every request
	Key        *PoolKey    `json:"key,omitempty"`        // nil: only the limit of all requests
	Exempt     []Match     `json:"exempt,omitempty"`     // requests that one of these matches need no slot
	Partitions []Partition `json:"partitions,omitempty"` // at most 16; the first that matches is the request's
	Queue      *Queue      `json:"queue,omitempty"`      // nil: a request that finds no slot is refused at once
	// StatusCode answers a request that finds no slot: 503 or 429.
	StatusCode int `json:"statusCode"`
}

// A PoolKey gives the requests of every value of a key a limit of their own, besides that of
// all requests.
type PoolKey struct {
	Parts     []KeyPart `json:"parts"` // at least 1, at most MaxParts; none of the client's address
	OnMissing OnMissing `json:"onMissing"`
	Limit     int64     `json:"limit"`           // of requests of one value that the fleet has in flight
	Queue     *Queue    `json:"queue,omitempty"` // of those that wait for a slot of their value; nil: none does
}

// LimitRange bounds the fleet's limit, 1 ≤ Min ≤ Initial ≤ Max ≤ pool.MaxLimit. Where
// nothing is inferred all three are the limit.
type LimitRange struct {
	Min     int64 `json:"min"`
	Initial int64 `json:"initial"` // before latency was measured
	Max     int64 `json:"max"`
}

// LimitAlgorithmType says how the limit follows from latency.
type LimitAlgorithmType string

// The algorithms that infer a limit.
const (
	Gradient2  LimitAlgorithmType = "Gradient2"
	AIMD       LimitAlgorithmType = "AIMD"
	FixedLimit LimitAlgorithmType = "Fixed" // nothing is inferred: the limit is Max
)

// LimitAlgorithm infers a limit from latency; see package adaptive for what its
// knobs do. They apply to Gradient2 and AIMD only.
type LimitAlgorithm struct {
	Type             LimitAlgorithmType `json:"type"`
	Baseline         *Baseline          `json:"baseline,omitempty"`         // not nil
	SmoothingPercent int                `json:"smoothingPercent,omitempty"` // 1 to 100, of Gradient2
	TolerancePercent int                `json:"tolerancePercent,omitempty"` // 100 to 1000: latency over baseline that is not a sign of load
	BackoffPercent   int                `json:"backoffPercent,omitempty"`   // 50 to 99, of AIMD
	Ignore           []Match            `json:"ignore,omitempty"`           // requests whose latency says nothing
}

// BaselineType says how latency without load is known.
type BaselineType string

// The types of a baseline.
const (
	MeasuredBaseline BaselineType = "Measured"
	RollingBaseline  BaselineType = "Rolling"
)

// Baseline says how latency without load is known. Samples applies to a rolling one,
// the rest to a measured one.
type Baseline struct {
	Type         BaselineType   `json:"type"`
	Samples      int            `json:"samples,omitempty"`      // over which it is the minimum, 1 to 10000
	Interval     limiter.Micros `json:"interval,omitempty"`     // between measurements at least
	ProbeLimit   int64          `json:"probeLimit,omitempty"`   // of the fleet while it measures; each pod may have one; 0 follows from the limit
	ProbeSamples int            `json:"probeSamples,omitempty"` // 1 to 1000
}

// Aggregate names a pool.Aggregate.
type Aggregate string

// The aggregates.
const (
	Median  Aggregate = "Median"
	Minimum Aggregate = "Min"
)

// Allocation names a pool.Allocation.
type Allocation string

// The allocations.
const (
	EqualSplit         Allocation = "EqualSplit"
	DemandProportional Allocation = "DemandProportional"
)

// Handoff names a pool.Handoff.
type Handoff string

// The handoffs.
const (
	Acknowledged Handoff = "Acknowledged"
	Occupancy    Handoff = "Occupancy"
)

// Heartbeat says how often holders ask for their share.
type Heartbeat struct {
	Interval limiter.Micros `json:"interval"`
	LeaseTTL limiter.Micros `json:"leaseTTL"`        // more than Interval
	Eager    bool           `json:"eager,omitempty"` // beat at once, too, when that frees or fills a share
	// MinInterval is the least time from one beat to the next, at most Interval: to an
	// eager one, or to the first repetition of one that was not answered.
	MinInterval limiter.Micros `json:"minInterval"`
}

// SelfFence says when a holder stops by itself.
type SelfFence struct {
	// Margin is how long before its share is granted to others a holder stops to use
	// it; less than LeaseTTL − Interval.
	Margin   limiter.Micros `json:"margin"`
	OnFenced FenceAction    `json:"onFenced"`
}

// FenceAction says what happens to requests in flight when a holder stops.
type FenceAction string

// The fence actions.
const (
	Drain FenceAction = "Drain" // they finish
	Abort FenceAction = "Abort" // they are ended
)

// OutageAction says what a holder does while its coordinator does not answer.
type OutageAction string

// The outage actions.
const (
	FailClosed OutageAction = "FailClosed" // refuse once the share has expired
	LocalOnly  OutageAction = "LocalOnly"  // each holder admits up to what it infers, by itself
)

// A Partition keeps a part of every holder's share for some requests.
type Partition struct {
	Name              string  `json:"name"`
	GuaranteedPercent int     `json:"guaranteedPercent"` // 0 to 100; all of them at most 100
	Match             []Match `json:"match,omitempty"`   // none means every request
}

// Queue lets requests wait for a slot, first come first served.
type Queue struct {
	MaxLength int            `json:"maxLength"` // of one pod's queue, at least 1
	MaxWait   limiter.Micros `json:"maxWait"`   // positive
}

var (
	aggregates  = map[Aggregate]pool.Aggregate{Median: pool.Median, Minimum: pool.Min}
	allocations = map[Allocation]pool.Allocation{EqualSplit: pool.EqualSplit, DemandProportional: pool.DemandProportional}
	handoffs    = map[Handoff]pool.Handoff{Acknowledged: pool.Acknowledged, Occupancy: pool.Occupancy}
)

func (p *Pool) compare(q *Pool) int {
	name, perKey := PoolName(p.Name)
	other, otherPerKey := PoolName(q.Name)
	c := cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(name, other))
	switch {
	case c != 0 || perKey == otherPerKey:
		return c
	case perKey:
		return -1 // a request waits for a slot of the pool with that of its key, not the other way round
	default:
		return 1
	}
}

// keySuffix ends the name of what PerKey returns. No object has a name with a slash.
const keySuffix = "/key"

// PoolName returns the name of the object that a pool is of, and whether the pool is its
// limit per key.
func PoolName(name string) (object string, isPerKey bool) { return strings.CutSuffix(name, keySuffix) }

// PerKeyName returns the name of the limit per key of the pool that an object is.
func PerKeyName(object string) string { return object + keySuffix }

// PerKey returns the pool that divides the limit per key, nil for a pool without a key and for
// one that is such a limit itself. Its limit is that of every value: a holder may have its share
// in flight of each of them.
func (p *Pool) PerKey() *Pool {
	if _, itself := PoolName(p.Name); itself || p.Key == nil {
		return nil
	}
	k := *p
	k.Name = PerKeyName(p.Name)
	k.Limit = LimitRange{Min: p.Key.Limit, Initial: p.Key.Limit, Max: p.Key.Limit}
	k.Algorithm, k.Aggregate = LimitAlgorithm{Type: FixedLimit}, Median
	k.Partitions, k.Queue = nil, p.Key.Queue
	return &k
}

// Params returns what a coordinator divides the pool by.
func (p *Pool) Params() pool.Params {
	return pool.Params{
		Min: p.Limit.Min, Max: p.Limit.Max, Initial: p.Limit.Initial,
		Aggregate:  aggregates[p.Aggregate],
		Allocation: allocations[p.Allocation],
		Handoff:    handoffs[p.Handoff],
		TTL:        p.Heartbeat.LeaseTTL,
		Quarantine: p.Heartbeat.LeaseTTL,
		Generation: p.Generation,
	}
}

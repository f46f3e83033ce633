package audit

import "github.com/weir-dev/weir/pkg/limiter"

// A PoolReport is what one holder says of a concurrency pool, whoever divides it.
// Counts of requests are since the holder's process started.
type PoolReport struct {
	Generation int64 // of the pool the holder enforces

	Share    int64 // of the limit; 0 while it is fenced
	Ceiling  int64 // that it enforces
	Inferred int64 // what it infers that the backend bears
	InFlight int64
	Peak     int64 // since its last report
	Spared   int64 // of Peak, at most, that were let through without a slot in mode Shadow
	Queued   int64
	Fenced   bool // its share expired before its coordinator answered

	Baseline limiter.Micros // latency without load, 0 when nothing was measured
	Latency  limiter.Micros // of the last request measured, 0 when none was

	Admitted, Refused int64
	Fences, Aborted   int64

	// CoordinatorError is why its coordinator does not answer, empty when it does.
	CoordinatorError string
	// What its coordinator answered last under this generation; Limit is 0 before it did.
	Limit, Holders int64
	// Occupied is the most that the fleet can have had in flight, and Bound what it may
	// have been: of all answers since the last report the worst.
	Occupied, Bound int64
	Quarantined     limiter.Micros // how much longer nothing more is granted than is in use

	Partitions []PartitionReport
}

// A PartitionReport is what one holder says of a partition of its pool.
type PartitionReport struct {
	Name       string
	Guaranteed int64 // slots
	InFlight   int64
	Refused    int64 // since its process started
}

// Local reports whether the holder admits by what it infers alone.
func (r *PoolReport) Local() bool { return r.Ceiling > r.Share }

// CutOff reports whether the holder refuses every request, because its coordinator does
// not answer: its share expired, or it never had one.
func (r *PoolReport) CutOff() bool {
	return r.Fenced || r.CoordinatorError != "" && r.Share == 0 && !r.Local()
}

// answered reports whether the coordinator's word in r is from now.
func (r *PoolReport) answered() bool { return r.Limit > 0 && !r.Fenced && r.CoordinatorError == "" }

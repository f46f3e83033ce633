package pools

import (
	"time"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Refusal says why a request got no slot.
type Refusal struct {
	Pool    *policy.Pool // what Pool.PerKey returns when a value of the key got no slot
	Verdict concurrency.Verdict
	// Missing is the part of the key that the request lacks, or has twice; the rest is not set
	// then. Nil for one that found no slot.
	Missing *policy.KeyPart
	Limit   int64 // of the fleet, 0 while it is not known
	Holders int64 // that the limit is divided among
	// Of this pod: how many it may have in flight, how many it has, and how many more
	// are kept for partitions.
	Ceiling, InFlight, Kept int64
	// CoordinatorError is why there is no share, nil when the coordinator answers.
	CoordinatorError error
	// RetryAfter is about how long it takes until there may be a slot, positive.
	RetryAfter time.Duration
}

// without refuses a request that lacks a part of the key, and lets it pass in shadow.
func (p *inForce) without(part policy.KeyPart) *Refusal {
	p.tallies.of(slots.Rest).lacks(p.shadow)
	if p.shadow {
		return nil
	}
	return &Refusal{Pool: p.Pool, Missing: &part}
}

func (p *inForce) refuse(v concurrency.Verdict) *Refusal {
	s := p.engine.guard.Stats()
	return &Refusal{
		Pool: p.Pool, Verdict: v, Limit: s.Grant.Limit, Holders: s.Grant.Holders,
		Ceiling: s.Ceiling, InFlight: s.InFlight, Kept: kept(&s),
		CoordinatorError: s.CoordinatorError, RetryAfter: p.wait(v, &s),
	}
}

// kept returns how many slots are free, but not for everybody.
func kept(s *concurrency.Stats) int64 {
	var n int64
	for _, p := range s.Partitions {
		n += max(0, p.Guaranteed-p.InFlight)
	}
	return min(n, max(0, s.Ceiling-s.InFlight))
}

// wait estimates how long it takes until there may be a slot: until those that wait
// and one more are through, or, while there is no share, until the next beat.
func (p *inForce) wait(v concurrency.Verdict, s *concurrency.Stats) time.Duration {
	beat := duration(p.Pool.Heartbeat.Interval)
	switch {
	case v == concurrency.Unassigned, v == concurrency.Fenced, s.Ceiling <= 0:
		return beat
	case s.Latency <= 0:
		return time.Second
	}
	const most = time.Minute // beyond, the estimate says little
	turns := s.Queued/s.Ceiling + 1
	return min(time.Duration(turns*int64(s.Latency)), most)
}

package pools

import (
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A State is a pool in force, or its limit per key, as metrics and people are shown it.
type State struct {
	Pool    *policy.Pool
	Shadow  bool
	Stats   concurrency.Stats
	Spared  int64    // requests in flight that were let through without a slot in mode Shadow
	Tallies []*Tally // of the partitions, in their order, and of requests of none
}

// States returns the states of the pools in force, ordered by name.
func (k *Enforcer) States() []State {
	all := k.current.Load()
	if all == nil {
		return nil
	}
	var states []State
	for _, p := range all.pools {
		states = append(states, State{Pool: p.Pool, Shadow: p.shadow, Stats: p.engine.guard.Stats(), Spared: p.engine.spared.inFlight(), Tallies: p.tallies})
	}
	return states
}

// sent is the worst that was sent to a session last. One that broke may not have received
// it, so the next is sent it again.
type sent struct {
	known   bool
	session uint64
	worst   worst
}

// worst is the most since the last report. Spared requests come on top of what the guard
// saw: they passed because it was full.
type worst struct {
	concurrency.Worst
	spared int64
}

// worstSince returns the most since the last report; Enforcer.mu is held.
func (e *engine) worstSince(session uint64) worst {
	w := worst{e.guard.TakeWorst(), e.spared.takePeak()}
	if e.sent.known && e.sent.session != session {
		w = worse(w, e.sent.worst)
	}
	e.sent = sent{true, session, w}
	return w
}

func worse(a, b worst) worst {
	out := a
	out.Peak, out.spared = max(a.Peak, b.Peak), max(a.spared, b.spared)
	if a.Bound == 0 || b.Bound > 0 && b.Occupied-b.Bound > a.Occupied-a.Bound {
		out.Occupied, out.Bound = b.Occupied, b.Bound
	}
	return out
}

// Report returns what there is to say of the pools in force to the session.
func (k *Enforcer) Report(session uint64) []*fleetpb.PoolReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.current.Load()
	if all == nil {
		return nil
	}
	var reports []*fleetpb.PoolReport
	for _, p := range all.pools {
		s := p.engine.guard.Stats()
		answered := s.Grant.Seq > p.engine.before // an older answer is of another generation
		reports = append(reports, reportOf(p.Pool, &s, p.engine.worstSince(session), p.engine.spared.inFlight(), p.tallies.keyMissing(), answered))
	}
	return reports
}

// reportOf returns what there is to say of a pool: of its guard, of the worst since the last
// report, of the requests in flight that were spared and of those without the key. Answered says
// that the coordinator answered under the pool's generation.
func reportOf(p *policy.Pool, s *concurrency.Stats, w worst, spared, keyMissing int64, answered bool) *fleetpb.PoolReport {
	r := &fleetpb.PoolReport{
		Namespace: p.Namespace, Pool: p.Name, Generation: p.Generation,
		Share: s.Share, Ceiling: s.Ceiling, Inferred: s.Inferred,
		InFlight: s.InFlight, Peak: w.Peak, Spared: w.spared, Queued: s.Queued, Fenced: s.Fenced,
		BaselineMicros: s.Baseline.Microseconds(), LatencyMicros: s.Latency.Microseconds(),
		AdmittedTotal: s.Admitted, RefusedTotal: s.Refused, FencedTotal: s.Fences, AbortedTotal: s.Aborted,
		Occupied: w.Occupied, Bound: w.Bound, QuarantinedMicros: int64(s.Grant.Quarantined), KeyMissingTotal: keyMissing,
	}
	if _, perKey := policy.PoolName(p.Name); !perKey { // nobody knows whose the spared requests are
		r.InFlight, r.Peak = s.InFlight+spared, w.Peak+w.spared
	}
	if answered {
		r.Limit, r.Holders = s.Grant.Limit, s.Grant.Holders
	}
	if s.CoordinatorError != nil {
		r.CoordinatorError = store.Text(s.CoordinatorError) // statuses show it
	}
	for _, part := range s.Partitions {
		r.Partitions = append(r.Partitions, &fleetpb.PoolReport_Partition{
			Name: part.Name, Guaranteed: part.Guaranteed, InFlight: part.InFlight, RefusedTotal: part.Refused,
		})
	}
	return r
}

package enforce

import (
	"cmp"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Report returns what this process counted and the session was not yet sent,
// with the state of the engines beside it.
func (e *Enforcer) Report(now time.Time, session uint64) []*fleetpb.LimitReport {
	running := make(map[count.Name]*limit)
	for _, l := range e.current.Load().limits {
		running[l.name()] = l
	}
	reports := e.book.Report(now, session)
	for _, r := range reports {
		l := running[count.Name{Namespace: r.GetNamespace(), Policy: r.GetPolicy(), Limit: r.GetLimit()}]
		if l == nil {
			continue
		}
		s := l.engine.Stats()
		addStats(r, &s)
		matched, unmatched := l.matching.look(now)
		r.Matched, r.UnmatchedMicros = matched, unmatched.Microseconds()
	}
	return reports
}

func addStats(r *fleetpb.LimitReport, s *twotier.Stats) {
	r.RoundTripsTotal, r.ActiveKeys = s.RoundTrips, int64(s.ActiveKeys)
	if s.CutOff != nil {
		r.StoreError = store.Text(s.CutOff) // statuses show it
	}
	if s.Full != twotier.NoBound {
		r.KeysBound, r.SharedKeys = keysBounds[s.Full], int64(s.SharedKeys)
	}
	if s.LearningFor > 0 {
		r.LearningReason, r.LearningMicros = int32(s.Learning), s.LearningFor.Microseconds()
	}
}

var keysBounds = map[twotier.KeysBound]fleetpb.KeysBound{
	twotier.MaxKeysBound: fleetpb.KeysBound_KEYS_BOUND_MAX_KEYS,
	twotier.MemoryBound:  fleetpb.KeysBound_KEYS_BOUND_MEMORY,
}

// Audit answers a question about keys in windows that are over.
func (e *Enforcer) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply { return e.book.Audit(q) }

// A LimitState is a limit in force as metrics show it.
type LimitState struct {
	count.Name
	Algorithm   policy.Algorithm
	Consistency policy.ConsistencyMode
	Mode        policy.Mode
	Budget      string // the FederatedBudget that it draws from, by its name; empty for none
	Counts      *count.Limit
	Stats       twotier.Stats
	Credits     int64 // units in hand, over all keys
}

// Limits returns the limits in force.
func (e *Enforcer) Limits() []LimitState {
	t := e.current.Load()
	states := make([]LimitState, len(t.limits))
	for i, l := range t.limits {
		states[i] = LimitState{
			Name:        l.name(),
			Algorithm:   cmp.Or(l.Limit.Algorithm, policy.FixedWindow),
			Consistency: l.Limit.ConsistencyOf(l.Policy).Mode,
			Mode:        policy.Enforce,
			Counts:      l.counts,
			Stats:       l.engine.Stats(),
			Credits:     l.engine.Credits(),
		}
		if l.shadow {
			states[i].Mode = policy.Shadow
		}
		if l.Limit.Budget != nil {
			states[i].Budget = l.Limit.Budget.Name
		}
	}
	return states
}

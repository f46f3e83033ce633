package coordinator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// An Observation is what the fleet says about one policy.
type Observation struct {
	Term     uint64          // 0: this process does not lead, and knows nothing
	Holders  int             // sessions that are served by the policy
	Sessions []PolicySession // that are served by the policy or enforce it; ordered by pod
	Limits   []LimitFigures  // ordered by name
	// Learning are the limits that grant nothing now, by name.
	Learning map[string]Learning
	// Crowded are the limits whose new values share counters, because there is no room
	// for more values in the controller's store; ordered by name.
	Crowded []string
	// KeysFull are the limits with values that share counters because sidecars have no room for
	// more, by name.
	KeysFull map[string]KeysFull
	// Unmatched are the limits that matched no request in any sidecar since the policy has this
	// generation, while requests came for an hour; ordered by name.
	Unmatched []string
}

// A Session is one connected sidecar process that has to do with a policy or a pool.
type Session struct {
	Pod, PodUID string
	Nonce       string // of the process
	Version     string // of the sidecar's build
	Since       time.Time
	Capture     fleetpb.Capture // how the pod's requests come to the sidecar
	Mode        fleetpb.Mode    // of the pod
	Generation  int64           // that the sidecar enforces, as it acknowledged; 0 for nothing
	Error       string          // why the sidecar does not enforce what it was sent last
	Rejected    string          // what of its rows could not be read lately, and the cure
}

// A PolicySession is a Session that has to do with a policy.
type PolicySession struct {
	Session
	// Enforced is the policy as the sidecar acknowledged it, nil for none. It is
	// shared and must not be changed.
	Enforced   *policy.Policy
	StoreError string // why the policy's store does not answer the sidecar
}

// LimitFigures are the figures of one limit.
type LimitFigures struct {
	Limit string
	audit.Figures
}

// A Learning says that the store of a limit refuses everything, because it cannot know what
// it granted before. Since is when a sidecar first reported that, and Until when it ends,
// unless the store loses its memory again. Both are times of this process.
type Learning struct {
	Since, Until time.Time
	Reason       limiter.Reason // Amnesia or ClockBehind
}

// A KeysFull says that values of a limit's key have no counters of their own in sidecars.
type KeysFull struct {
	Pods int    // whose sidecars say so
	Pod  string // the first of them by name; Bound and Shared are as its sidecar says
	// Bound is what holds there, and Shared how many counters the values share.
	Bound  fleetpb.KeysBound
	Shared int64
}

// Bury assumes that the sidecars of these pods of a policy have ended: the pods are gone.
// Their admissions since they last accounted for everything stay unknown.
func (c *Coordinator) Bury(namespace, name string, podUIDs []string) {
	if t := c.present.Load(); t != nil && len(podUIDs) > 0 {
		t.accounting.bury(types.NamespacedName{Namespace: namespace, Name: name}, podUIDs)
	}
}

// Observe returns what is known of a policy. It does not block on any sidecar.
func (c *Coordinator) Observe(namespace, name string) Observation {
	t := c.present.Load()
	if t == nil {
		return Observation{}
	}
	return t.observe(types.NamespacedName{Namespace: namespace, Name: name})
}

func (t *term) observe(name types.NamespacedName) Observation {
	out := Observation{Term: t.number, Learning: map[string]Learning{}, KeysFull: map[string]KeysFull{}}
	said := map[string]matches{}
	for _, s := range t.sessions.in(name.Namespace) {
		if view, ok := s.observe(name); ok {
			out.Sessions = append(out.Sessions, view)
		}
		s.observeLearning(name, out.Learning)
		s.observeKeysFull(name, out.KeysFull)
		s.observeMatches(name, said)
		if s.enforces(name) {
			out.Holders++
		}
	}
	out.Unmatched = unmatched(said)
	if all := t.crowded.Load(); all != nil {
		out.Crowded = slices.Sorted(slices.Values((*all)[name]))
	}
	for limit, figures := range t.accounting.figures(name) {
		out.Limits = append(out.Limits, LimitFigures{Limit: limit, Figures: figures})
	}
	slices.SortFunc(out.Limits, func(a, b LimitFigures) int { return cmp.Compare(a.Limit, b.Limit) })
	return out
}

// observe returns how the session stands to a policy, and false when it has
// nothing to do with it.
func (s *session) observe(name types.NamespacedName) (PolicySession, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	view := PolicySession{Session: s.view(s.acked.generation(name), rejectedOf(s.rejected, name)), Enforced: s.acked.policy(name)}
	var first string
	for limit, text := range s.storeErrors {
		if limit.policy == name && (first == "" || limit.limit < first) {
			first, view.StoreError = limit.limit, text
		}
	}
	return view, s.serves.has(name) || s.acked.has(name)
}

// view returns the session as one that enforces a generation and sent what was rejected.
// The lock is held.
func (s *session) view(generation int64, rejected string) Session {
	return Session{
		Pod: s.Pod, PodUID: s.PodUID, Nonce: s.nonce, Version: s.version, Since: s.since,
		Capture: s.capture, Mode: s.mode, Generation: generation, Error: s.refusal, Rejected: rejected,
	}
}

// A PoolObservation is what the fleet says about one pool.
type PoolObservation struct {
	Term     uint64        // 0: this process does not lead, and knows nothing
	Sessions []PoolSession // that are served by the pool or enforce it; ordered by pod
	// Figures are nil while nobody was served by the pool in this term. Keys are those of its
	// limit per key, where what is in flight is that of the value that has the most, in each
	// holder; nil for none.
	Figures, Keys *poolaudit.Figures
}

// A PoolSession is a Session that has to do with a pool.
type PoolSession struct {
	Session
	// Enforced is the pool as the sidecar acknowledged it, nil for none. It is shared and must not
	// be changed.
	Enforced *policy.Pool
	// Report is what the sidecar said last, and Keys what it said of the limit per key; nil when
	// it said nothing.
	Report, Keys *poolaudit.Report
}

// ObservePool returns what is known of a pool. It does not block on any sidecar.
func (c *Coordinator) ObservePool(namespace, name string) PoolObservation {
	t := c.present.Load()
	if t == nil {
		return PoolObservation{}
	}
	return t.observePool(types.NamespacedName{Namespace: namespace, Name: name})
}

func (t *term) observePool(name types.NamespacedName) PoolObservation {
	perKey := types.NamespacedName{Namespace: name.Namespace, Name: policy.PerKeyName(name.Name)}
	out := PoolObservation{Term: t.number, Figures: t.poolAccounting.figures(name), Keys: t.poolAccounting.figures(perKey)}
	for _, s := range t.sessions.in(name.Namespace) {
		view, ok := s.observePool(name)
		if !ok {
			continue
		}
		if report, said := t.poolAccounting.last(s.holder, name); said {
			view.Report = &report
		}
		if report, said := t.poolAccounting.last(s.holder, perKey); said {
			view.Keys = &report
		}
		out.Sessions = append(out.Sessions, view)
	}
	return out
}

// observePool returns how the session stands to a pool, and false when it has nothing
// to do with it.
func (s *session) observePool(name types.NamespacedName) (PoolSession, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	view := s.view(s.acked.poolGeneration(name), rejectedOf(s.rejectedPools, name))
	of := PoolSession{Session: view}
	if s.acked.hasPool(name) {
		of.Enforced = s.acked.pools[name].policy
	}
	return of, s.serves.hasPool(name) || s.acked.hasPool(name)
}

// ObserveBudget returns what is known of the budget of a FederatedBudget. It does not
// block.
func (c *Coordinator) ObserveBudget(namespace, name string) budget.Observation {
	t := c.present.Load()
	if t == nil {
		return budget.Observation{}
	}
	return t.budgets.Observe(namespace, name)
}

// notify announces that the session's standing to these policies, and to its pools, changed.
func (t *term) notify(s *session, policies []types.NamespacedName) {
	t.notices.Add(policies...)
	t.noticePools(slices.Collect(maps.Keys(s.servingPools()))...)
}

// noticePools announces that there is news of these pools, or of their limits per key.
func (t *term) noticePools(names ...types.NamespacedName) {
	for _, name := range names {
		t.poolNotices.Add(objectOf(name))
	}
}

// objectOf returns the name of the object that a pool is of.
func objectOf(pool types.NamespacedName) types.NamespacedName {
	pool.Name, _ = policy.PoolName(pool.Name)
	return pool
}

package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/selection"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// poolScope is all that one reconciliation of a pool knows. Everything that is said
// about the pool is a function of it.
type poolScope struct {
	pool        *v1alpha1.ConcurrencyPool
	invalid     error    // why the pool cannot be enforced; nil when it can
	doubts      []string // why it may not do what was meant
	enforced    policy.Pool
	conflict    string // with an older pool; empty for none
	pods        pods   // that the pool applies to
	observation coordinator.PoolObservation
	credentials credentials
	now         time.Time

	enforcing *enforcement // of pods and observation, once enforcement was called
}

// credentials are those of the coordinator that a pool names.
type credentials struct {
	version string
	err     error // why they cannot be had
}

// divide takes those of the selected pods that the pool applies to, and notes to which
// older pool it loses others, or would.
func (s *poolScope) divide(selected []*corev1.Pod, all []v1alpha1.ConcurrencyPool) {
	var own []*corev1.Pod
	lost := make(map[string][]string) // pods, by the pool that applies to them
	for _, pod := range selected {
		winner, applies := s.place(resolve.Pools(all, pod.Namespace, pod.Labels))
		switch {
		case applies:
			own = append(own, pod)
		case !selection.Finished(pod):
			lost[winner] = append(lost[winner], pod.Name)
		}
	}
	s.pods = selectPods(own)
	s.conflict = s.conflictWith(lost, all)
}

// place reports whether the pool applies to a pod that these select. Otherwise it returns the
// older pool without match that does in its place, "" when there are too many pools.
func (s *poolScope) place(selecting []*v1alpha1.ConcurrencyPool) (winner string, applies bool) {
	applying := resolve.Applying(selecting)
	named := func(p *v1alpha1.ConcurrencyPool) bool { return p.Name == s.pool.Name }
	if slices.ContainsFunc(applying, named) || !slices.ContainsFunc(selecting, named) { // not in the cache yet
		return s.pool.Name, true
	}
	if len(s.pool.Spec.Match) > 0 {
		return "", false
	}
	for _, p := range applying {
		if len(p.Spec.Match) == 0 {
			return p.Name, false
		}
	}
	return "", false
}

func (s *poolScope) conflictWith(lost map[string][]string, all []v1alpha1.ConcurrencyPool) string {
	const cure = "; narrow one of the two podSelectors, or delete one of the pools"
	if winners := slices.Sorted(maps.Keys(lost)); len(winners) > 0 {
		winner := winners[0]
		slices.Sort(lost[winner])
		if winner == "" {
			return fmt.Sprintf("%d older pools apply to pods that this one selects, too, and no more may: %s; narrow a podSelector, or delete one of the pools", policy.MaxPools, nameSome(lost[winner]))
		}
		return fmt.Sprintf("pool %s is older and applies to pods that both select: %s", winner, nameSome(lost[winner])) + cure
	}
	for _, rival := range resolve.Rivals(all, s.pool) {
		if resolve.Precedence(rival.Pool, s.pool) < 0 {
			return fmt.Sprintf("pool %s is older and applies to pods that both select, such as those with %s", rival.Pool.Name, labelled(rival.Both)) + cure
		}
	}
	return ""
}

func labelled(labels map[string]string) string {
	if len(labels) == 0 {
		return "no label"
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return strings.Join(out, ",")
}

// observe takes over what the fleet said. Figures under another generation are not those
// of this one.
func (s *poolScope) observe(o coordinator.PoolObservation) {
	s.observation = o
	s.observation.Figures, s.observation.Keys = s.since(o.Figures), s.since(o.Keys)
	if s.enforced.Key == nil {
		s.observation.Keys = nil // of a generation before
	}
}

// since returns figures of this generation, nil for none.
func (s *poolScope) since(known *poolaudit.Figures) *poolaudit.Figures {
	if known == nil {
		return nil
	}
	f := *known
	if f.Generation != s.enforced.Generation {
		if f.Verdict != audit.NoTraffic {
			f.Verdict = audit.Starting
		}
		f.Pending, f.Overshoot, f.UnderUtilization = true, nil, nil
	}
	return &f
}

// perKey returns the scope of the limit per value of the key, in which reports and figures
// are those of that limit, and false for a pool without one.
func (s *poolScope) perKey() (*poolScope, bool) {
	pool := s.enforced.PerKey()
	if pool == nil {
		return nil, false
	}
	k := *s
	k.enforced = *pool
	k.observation.Figures, k.observation.Keys = s.observation.Keys, nil
	k.observation.Sessions = slices.Clone(s.observation.Sessions)
	for i := range k.observation.Sessions {
		k.observation.Sessions[i].Report = s.observation.Sessions[i].Keys
	}
	return &k, true
}

// figures returns what was measured, and false when no sidecar reported.
func (s *poolScope) figures() (poolaudit.Figures, bool) {
	if s.observation.Figures == nil || !slices.ContainsFunc(s.observation.Sessions, func(p coordinator.PoolSession) bool { return p.Report != nil }) {
		return poolaudit.Figures{}, false
	}
	return *s.observation.Figures, true
}

// sessions returns the session that speaks for each pod, by the pod's UID.
func (s *poolScope) sessions() map[string]*coordinator.PoolSession {
	return speaking(s.observation.Sessions, func(p *coordinator.PoolSession) *coordinator.Session { return &p.Session })
}

// enforcement returns the pods that have to enforce the pool.
func (s *poolScope) enforcement() *enforcement {
	if s.enforcing == nil {
		s.enforcing = newEnforcement("pool", s.pool.Generation, translate.Generation(s.pool), s.pods, s.sessions(),
			func(p *coordinator.PoolSession) *coordinator.Session { return &p.Session })
	}
	return s.enforcing
}

// reporting returns the names of the pods whose last report is so.
func (s *poolScope) reporting(so func(*poolaudit.Report) bool) []string {
	var names []string
	for _, session := range s.observation.Sessions {
		if session.Report != nil && so(session.Report) {
			names = append(names, session.Pod)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// otherwise returns the names of the pods that run an earlier generation by which other requests
// need a slot, or are of other values: what this one would bound is not bounded there.
func (s *poolScope) otherwise() []string {
	var names []string
	for _, session := range s.sessions() {
		if e := session.Enforced; e != nil && e.Generation != s.enforced.Generation && !s.selectsAs(e) {
			names = append(names, session.Pod)
		}
	}
	slices.Sort(names)
	return names
}

// selectsAs reports whether the same requests need a slot by another generation of the pool, and
// of the limit per key whether they are of the same values.
func (s *poolScope) selectsAs(e *policy.Pool) bool {
	if !equality.Semantic.DeepEqual(s.enforced.Match, e.Match) || !equality.Semantic.DeepEqual(s.enforced.Exempt, e.Exempt) {
		return false
	}
	if _, perKey := policy.PoolName(s.enforced.Name); !perKey {
		return true
	}
	return e.Key != nil && e.Key.OnMissing == s.enforced.Key.OnMissing && slices.Equal(e.Key.Parts, s.enforced.Key.Parts)
}

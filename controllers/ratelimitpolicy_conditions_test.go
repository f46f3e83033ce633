package controllers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

const generation = 4

var now = time.Date(2026, 11, 20, 10, 15, 0, 0, time.UTC)

// newScope is a valid policy of one limit, and nothing known of it.
func newScope(changes ...func(*scope)) *scope {
	s := &scope{
		policy: &v1alpha1.RateLimitPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", UID: "uid", Generation: generation},
			Spec: v1alpha1.RateLimitPolicySpec{
				Store:              v1alpha1.PolicyStore{Store: v1alpha1.Store{Type: v1alpha1.ControllerStore}},
				OnStoreUnavailable: v1alpha1.OnStoreUnavailable{Action: v1alpha1.LocalShareAction},
				Limits:             []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: 100, Window: "1s"}}}},
			},
		},
		now: now,
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func enforcers(names ...string) func(*scope) {
	return func(s *scope) {
		for _, name := range names {
			s.pods.enforcers = append(s.pods.enforcers, enforcer{name, types.UID("uid-" + name), true})
		}
	}
}

func uninjected(names ...string) func(*scope) {
	return func(s *scope) { s.pods.uninjected = names }
}

func acknowledged(gen int64, names ...string) func(*scope) {
	return func(s *scope) {
		for _, name := range names {
			s.observation.Sessions = append(s.observation.Sessions,
				coordinator.PolicySession{Session: coordinator.Session{Pod: name, PodUID: "uid-" + name, Generation: gen}})
		}
	}
}

func session(of coordinator.Session) func(*scope) {
	return policySession(coordinator.PolicySession{Session: of})
}

func policySession(of coordinator.PolicySession) func(*scope) {
	return func(s *scope) { s.observation.Sessions = append(s.observation.Sessions, of) }
}

func figures(limit string, f audit.Figures) func(*scope) {
	return func(s *scope) {
		f.Generation = generation
		s.observation.Limits = append(s.observation.Limits, coordinator.LimitFigures{Limit: limit, Figures: f})
	}
}

func onRedis(facts store.Facts, err error) func(*scope) {
	return func(s *scope) {
		s.policy.Spec.Store.Store = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis.shop.svc:6379"}}
		s.move.serving = s.policy.Spec.Store.Store
		s.store = probed{facts: facts, err: err}
	}
}

// resuming has a Redis that may forget grants of the limit, which goes on all the same.
func resuming(s *scope) {
	onRedis(store.Facts{}, nil)(s)
	s.enforced.Limits = append(s.enforced.Limits, policy.Limit{Name: "all", Retention: limiter.Retention{Durable: true, Resume: true}})
}

func many(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", prefix, i)
	}
	return names
}

func TestProgrammed(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ProgrammedCondition, Status: status, Reason: reason, Message: message}
	}
	const cure = "; opt them in and restart them, or select fewer pods"
	tests := map[string]struct {
		scope *scope
		want  metav1.Condition
	}{
		"no pod is selected": {
			newScope(),
			is("False", "NoEnforcers", "spec.podSelector selects no running pod"),
		},
		"no selected pod has a sidecar": {
			newScope(uninjected("a", "b")),
			is("False", "NoEnforcers", "no selected pod has a sidecar; running without a sidecar, so not limited: a, b"+cure),
		},
		"what was sent does not count: a pod has to connect": {
			newScope(enforcers("a")),
			is("False", "Reconciling", "1 of 1 enforcers do not run generation 4 yet: a (not heard of yet)"),
		},
		"a session without an acknowledgement does not count": {
			newScope(enforcers("a"), acknowledged(0, "a")),
			is("False", "Reconciling", "1 of 1 enforcers do not run generation 4 yet: a (has not acknowledged the policy)"),
		},
		"an older generation does not count": {
			newScope(enforcers("a", "b"), acknowledged(4, "a"), acknowledged(3, "b")),
			is("False", "Reconciling", "1 of 2 enforcers do not run generation 4 yet: b (runs an earlier generation)"),
		},
		"a refusal is reported": {
			newScope(enforcers("a"), session(coordinator.Session{PodUID: "uid-a", Generation: 3, Error: "unknown algorithm"})),
			is("False", "Reconciling", "1 of 1 enforcers do not run generation 4 yet: a (refused it: unknown algorithm)"),
		},
		"a pod that took the name of another is not that other": {
			newScope(enforcers("a"), session(coordinator.Session{Pod: "a", PodUID: "uid-before", Generation: 4})),
			is("False", "Reconciling", "1 of 1 enforcers do not run generation 4 yet: a (not heard of yet)"),
		},
		"the later session of a restarted sidecar speaks for the pod": {
			newScope(enforcers("a"),
				session(coordinator.Session{PodUID: "uid-a", Since: now.Add(time.Second), Generation: 3}),
				session(coordinator.Session{PodUID: "uid-a", Since: now, Generation: 4})),
			is("False", "Reconciling", "1 of 1 enforcers do not run generation 4 yet: a (runs an earlier generation)"),
		},
		"five laggards are named and the rest counted": {
			newScope(enforcers(many("p", 8)...), acknowledged(4, "p-01")),
			is("False", "Reconciling", "7 of 8 enforcers do not run generation 4 yet: p-00 (not heard of yet), p-02 (not heard of yet), "+
				"p-03 (not heard of yet), p-04 (not heard of yet), p-05 (not heard of yet), and 2 more"),
		},
		"a laggard outweighs a pod without a sidecar, and both are named": {
			newScope(enforcers("a"), uninjected("b")),
			is("False", "Reconciling", "1 of 1 enforcers do not run generation 4 yet: a (not heard of yet); running without a sidecar, so not limited: b"+cure),
		},
		"every enforcer runs it, but a host port leads past one": {
			newScope(enforcers("a", "b"), acknowledged(4, "a", "b"), func(s *scope) { s.pods.exposed = []string{"b (host port 80)"} }),
			is("True", "Programmed", "2 of 2 enforcers run generation 4; not limited where requests come by a host port, which leads past the sidecar: b (host port 80); remove hostPort"),
		},
		"every enforcer runs it, but a pod runs past them": {
			newScope(enforcers("a", "b"), acknowledged(4, "a", "b"), uninjected("c")),
			is("True", "PartiallyProgrammed", "2 of 2 enforcers run generation 4; running without a sidecar, so not limited: c"+cure),
		},
		"every enforcer runs it": {
			newScope(enforcers("a", "b"), acknowledged(4, "b", "a")),
			is("True", "Programmed", "2 of 2 enforcers run generation 4"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.scope.enforcement().programmed()); diff != "" {
				t.Errorf("programmed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithinBound(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.WithinBoundCondition, Status: status, Reason: reason, Message: message}
	}
	verdict := func(v audit.Verdict) audit.Figures { return audit.Figures{Verdict: v} }
	good := audit.Figures{Verdict: audit.Measured, Overshoot: &audit.Overshoot{}}
	broken := audit.Figures{Verdict: audit.Exceeded, Overshoot: &audit.Overshoot{Worst: 7, WorstEnd: now}}
	tests := map[string]struct {
		scope *scope
		want  metav1.Condition
	}{
		"nothing was reported": {
			newScope(),
			is("Unknown", "NoTraffic", "no sidecar has reported a request"),
		},
		"no window was measured": {
			newScope(figures("all", verdict(audit.Starting))),
			is("Unknown", "Starting", "no window was measured yet since this controller took over or the policy changed"),
		},
		"every window stayed within its bound": {
			newScope(figures("all", good)),
			is("True", "Measured", "no measured window exceeded its bound; worst overshoot 0"),
		},
		"a limit without traffic takes nothing from what was measured of another": {
			newScope(figures("all", good), figures("writes", verdict(audit.NoTraffic))),
			is("True", "Measured", "no measured window exceeded its bound; worst overshoot 0"),
		},
		"an overshoot of cut-off sidecars was within the bound of then": {
			newScope(figures("all", audit.Figures{Verdict: audit.Measured, Overshoot: &audit.Overshoot{Worst: 62}}), figures("writes", good)),
			is("True", "Measured", "no measured window exceeded its bound; worst overshoot 62, within the bound of its window "+
				"(sidecars cut off from the store were admitting their local share)"),
		},
		"an overshoot of what was admitted uncounted had no bound": {
			newScope(figures("all", audit.Figures{Verdict: audit.Measured, Overshoot: &audit.Overshoot{Worst: 62, WorstUnbounded: true}})),
			is("True", "Measured", "no measured window exceeded its bound; worst overshoot 62, in a window without a bound "+
				"(sidecars cut off from the store were admitting whatever came)"),
		},
		"an overshoot after a loss of memory is within its bound": {
			newScope(resuming, figures("all", audit.Figures{Verdict: audit.Measured, Overshoot: &audit.Overshoot{Worst: 62, Bound: 100}})),
			is("True", "Measured", "no measured window exceeded its bound; worst overshoot 62, within the bound of its window "+
				"(onMemoryLoss Resume allows one more limit for each loss of memory of the store, and sidecars cut off from the store admit their local share)"),
		},
		"an overshoot after losses that nobody could count had no bound": {
			newScope(resuming, figures("all", audit.Figures{Verdict: audit.Measured, Overshoot: &audit.Overshoot{Worst: 62, WorstUnbounded: true}})),
			is("True", "Measured", "no measured window exceeded its bound; worst overshoot 62, in a window without a bound "+
				"(the store may have lost its memory, it is not known how often, or sidecars cut off from it were admitting whatever came)"),
		},
		"losses that nobody could count": {
			newScope(resuming, figures("all", verdict(audit.MemoryLost)), figures("writes", good)),
			is("Unknown", "MemoryLost", "more was admitted in the last window than its limit, which onMemoryLoss Resume allows once for each loss of memory of the store, "+
				"and it is not known how often that was: limit all"),
		},
		"a missing report is never a zero": {
			newScope(figures("all", good), figures("writes", verdict(audit.ReportsMissing))),
			is("Unknown", "ReportsMissing", "a sidecar did not report what it let through in the last window: limit writes"),
		},
		"a sidecar that is not connected may admit what nobody counts": {
			newScope(figures("all", good), enforcers("a", "b"), acknowledged(generation, "a")),
			is("Unknown", "ReportsMissing", "these sidecars are not connected, so they do not report what they let through: b"),
		},
		"what a sidecar sends cannot be read": {
			newScope(figures("all", good), acknowledged(generation, "a"), session(coordinator.Session{
				Pod: "b", PodUID: "uid-b", Generation: generation, Rejected: "a report of limit all: windows[0].windows[0].index is -1",
			})),
			is("Unknown", "RowsRejected", "the controller cannot read what these sidecars send, so it counts for nothing: "+
				"b (a report of limit all: windows[0].windows[0].index is -1)"),
		},
		"a broken bound outweighs what cannot be read": {
			newScope(figures("all", broken), session(coordinator.Session{Pod: "b", PodUID: "uid-b", Generation: generation, Rejected: "a report"})),
			is("False", "BoundExceeded", "limit all admitted 7 too many in the window that ended at 2026-11-20T10:15:00.000Z"),
		},
		"a pod that does not run yet lets nothing through": {
			newScope(figures("all", good), func(s *scope) { s.pods.enforcers = []enforcer{{"new", "uid-new", false}} }),
			is("True", "Measured", "no measured window exceeded its bound; worst overshoot 0"),
		},
		"admitting uncounted cannot be judged": {
			newScope(figures("all", verdict(audit.FailOpen)), figures("writes", verdict(audit.ReportsMissing))),
			is("Unknown", "FailOpen", "the store is away and requests are admitted uncounted: limit all"),
		},
		"a broken bound outweighs all else and is shown in full": {
			newScope(figures("all", broken), figures("writes", verdict(audit.FailOpen))),
			is("False", "BoundExceeded", "limit all admitted 7 too many in the window that ended at 2026-11-20T10:15:00.000Z"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withinBound(tc.scope)); diff != "" {
				t.Errorf("withinBound (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoreReachable(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.StoreReachableCondition, Status: status, Reason: reason, Message: message}
	}
	cutOff := func(pod string) func(*scope) {
		return policySession(coordinator.PolicySession{Session: coordinator.Session{Pod: pod}, StoreError: "timeout"})
	}
	tests := map[string]struct {
		scope *scope
		want  metav1.Condition
	}{
		"the controller keeps the counters": {
			newScope(acknowledged(4, "a")),
			is("True", "Reachable", "the leading controller keeps the counters"),
		},
		"Redis answers": {
			newScope(onRedis(store.Facts{}, nil)),
			is("True", "Reachable", "Redis at redis.shop.svc:6379 answers"),
		},
		"sidecars that are cut off are named, sorted": {
			newScope(cutOff("b"), cutOff("a"), acknowledged(4, "c")),
			is("False", "Unreachable", "the store does not answer a (timeout), b (timeout)"+cutOffCure),
		},
		"Redis does not answer the controller": {
			newScope(onRedis(store.Facts{}, errors.New("connection refused")), acknowledged(4, "a")),
			is("False", "Unreachable", "the store does not answer the controller (connection refused)"+cutOffCure),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, storeReachable(tc.scope)); diff != "" {
				t.Errorf("storeReachable (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsOf(t *testing.T) {
	invalid := newScope(func(s *scope) { s.invalid = errors.New("spec.limits[0]: too many") })
	const wrong = "spec.limits[0]: too many"
	want := []metav1.Condition{
		condition.False("Accepted", "Invalid", wrong), condition.False("Ready", "Invalid", wrong), condition.True("Stalled", "Invalid", wrong),
	}
	if diff := cmp.Diff(want, conditionsOf(invalid)); diff != "" {
		t.Errorf("conditions of a policy that is not accepted (-want +got):\n%s", diff)
	}

	doubtful := newScope(func(s *scope) { s.doubts = []string{"spec.limits[0]: never binds"} })
	conditions := conditionsOf(doubtful)
	if got := conditions[0].Message; got != "the policy is valid; spec.limits[0]: never binds" {
		t.Errorf("Accepted says %q", got)
	}
	var kinds []string
	for _, c := range conditions {
		kinds = append(kinds, c.Type)
	}
	if diff := cmp.Diff([]string{"Accepted", "Programmed", "WithinBound", "StoreReachable", "Learning", "Ready"}, kinds); diff != "" {
		t.Errorf("condition types (-want +got):\n%s", diff)
	}

	idle := newScope(func(s *scope) {
		s.doubts = []string{"spec: odd"}
		s.policy.Spec.Limits = []v1alpha1.Limit{{Name: "a"}, {Name: "b"}}
		s.observe(coordinator.Observation{Unmatched: []string{"b", "removed"}})
	})
	const none = "the policy is valid; spec: odd; spec.limits[1]: requests came for an hour or longer, and limit b matched none of them: check its match and exempt with kubectl weir explain"
	if got := conditionsOf(idle)[0].Message; got != none {
		t.Errorf("Accepted says %q, want %q", got, none)
	}

	full := conditionsOf(newScope(func(s *scope) { s.observe(coordinator.Observation{Crowded: []string{"a"}}) }))
	if last := full[len(full)-1]; last.Type != v1alpha1.KeysFullCondition {
		t.Errorf("with values that share a counter the last condition is %s", last.Type)
	}
}

const cutOffCure = "; pods that are cut off follow spec.onStoreUnavailable.action LocalShare; check the server, its Secret and network policies"

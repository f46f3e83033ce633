package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// newPoolScope returns a pool of generation 4 with pods a and b, which acknowledged it
// and reported; figures are of pods that work.
func newPoolScope(changes ...func(*poolScope)) *poolScope {
	s := &poolScope{
		pool: &v1alpha1.ConcurrencyPool{ObjectMeta: metav1.ObjectMeta{Name: "db", Generation: 4}},
		enforced: policy.Pool{
			Generation: 4, Mode: policy.Enforce, Coordinator: policy.Store{Type: policy.ControllerStore},
			Limit: policy.LimitRange{Min: 8, Initial: 16, Max: 4000}, Algorithm: policy.LimitAlgorithm{Type: policy.Gradient2},
			Aggregate: policy.Median, Handoff: policy.Acknowledged, SelfFence: policy.SelfFence{OnFenced: policy.Abort},
		},
		now: now,
	}
	figures := &poolaudit.Figures{
		Generation: 4, Verdict: audit.Measured, Limit: 412, Holders: 2, Granted: 412, InFlight: 380, Measuring: 2,
		Baseline: 21 * limiter.Millisecond, Latency: 26 * limiter.Millisecond, Overshoot: &poolaudit.Overshoot{},
	}
	s.observation = coordinator.PoolObservation{Term: 1, Figures: figures}
	for _, name := range []string{"a", "b"} {
		uid := "uid-" + name
		s.pods.enforcers = append(s.pods.enforcers, enforcer{name, types.UID(uid), true})
		s.observation.Sessions = append(s.observation.Sessions, coordinator.PoolSession{
			Session: coordinator.Session{Pod: name, PodUID: uid, Generation: translate.Generation(s.pool)},
			Report:  &poolaudit.Report{Share: 206, Ceiling: 206, Inferred: 412, InFlight: 190, Latency: 26 * limiter.Millisecond},
		})
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func measuring(change func(*poolaudit.Figures)) func(*poolScope) {
	return func(s *poolScope) { change(s.observation.Figures) }
}

func reported(pod int, change func(*poolaudit.Report)) func(*poolScope) {
	return func(s *poolScope) { change(s.observation.Sessions[pod].Report) }
}

func enforcing(change func(*policy.Pool)) func(*poolScope) {
	return func(s *poolScope) { change(&s.enforced) }
}

// neverAnswered makes a report that of a pod that has not had a share.
func neverAnswered(r *poolaudit.Report) { *r = poolaudit.Report{CoordinatorError: "no route"} }

func TestConditionsOfAPool(t *testing.T) {
	over := &poolaudit.Overshoot{Observed: 3, Worst: 7, WorstTime: now}
	tests := map[string]struct {
		scope *poolScope
		want  metav1.Condition
	}{
		"a pool that is valid": {
			newPoolScope(), condition.True("Accepted", "Accepted", "the pool is valid"),
		},
		"a pool that is doubtful": {
			newPoolScope(func(s *poolScope) { s.doubts = []string{"odd"} }), condition.True("Accepted", "Accepted", "the pool is valid; odd"),
		},
		"a pool that is wrong": {
			newPoolScope(func(s *poolScope) { s.invalid = errors.New("wrong") }), condition.False("Accepted", "Invalid", "wrong"),
		},
		"a pool that lost its pods": {
			newPoolScope(func(s *poolScope) { s.conflict = "another" }), condition.False("Accepted", "Conflicted", "another"),
		},
		"all acknowledged": {
			newPoolScope(), condition.True("Programmed", "Programmed", "2 of 2 enforcers run generation 4"),
		},
		"one did not": {
			newPoolScope(func(s *poolScope) { s.observation.Sessions[1].Generation = 0 }),
			condition.False("Programmed", "Reconciling", "1 of 2 enforcers do not run generation 4 yet: b (has not acknowledged the pool)"),
		},
		"in flight within the limit": {
			newPoolScope(), condition.True("WithinBound", "Measured", "what was in flight stayed within the limit; worst overshoot 0"),
		},
		"in flight beyond the limit": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Verdict, f.Overshoot = audit.Exceeded, over })),
			condition.False("WithinBound", "BoundExceeded", "up to 7 requests more than the limit allows were in flight at 2026-11-20T10:15:00.000Z"),
		},
		"in flight beyond the limit after a drain": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Verdict, f.Overshoot = audit.Exceeded, over }),
				enforcing(func(p *policy.Pool) { p.SelfFence.OnFenced = policy.Drain })),
			condition.False("WithinBound", "BoundExceeded", "up to 7 requests more than the limit allows were in flight at 2026-11-20T10:15:00.000Z; "+
				"requests of a pod that was cut off may have run longer than selfFence.margin: raise it, or set selfFence.onFenced to Abort"),
		},
		"in flight where nothing is bounded": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Overshoot = over }), enforcing(func(p *policy.Pool) { p.Mode = policy.Shadow })),
			condition.True("WithinBound", "Measured", "mode Shadow bounds nothing; worst overshoot 7"),
		},
		"in flight since the mode was Shadow": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Verdict, f.Spared = audit.Starting, 9 })),
			condition.Unknown("WithinBound", "Starting", "requests that passed without a slot, in mode Shadow, are still in flight: up to 9"),
		},
		"in flight while shares change hands": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Overshoot = over }), enforcing(func(p *policy.Pool) { p.Handoff = policy.Occupancy })),
			condition.True("WithinBound", "Measured", "shares stayed within the limit; while they change hands handoff Occupancy does not bound what is in flight; worst overshoot 7"),
		},
		"a pod that admits by itself": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Verdict = audit.FailOpen }), reported(1, func(r *poolaudit.Report) { r.Share = 0 })),
			condition.Unknown("WithinBound", "LocalOnly", "cut off from the coordinator, these pods admit as many requests as they infer by themselves: b"),
		},
		"a pod that does not report": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Verdict = audit.ReportsMissing }), func(s *poolScope) { s.observation.Sessions[0].Report = nil }),
			condition.Unknown("WithinBound", "ReportsMissing", "a sidecar does not report what it has in flight: a"),
		},
		"a pod whose reports cannot be read": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Verdict = audit.ReportsMissing }), func(s *poolScope) { s.observation.Sessions[1].Rejected = "a pool: share is -1" }),
			condition.Unknown("WithinBound", "RowsRejected", "the controller cannot read what these sidecars send, so it counts for nothing: b (a pool: share is -1)"),
		},
		"a pod that is not connected": {
			newPoolScope(func(s *poolScope) { s.observation.Sessions = s.observation.Sessions[:1] }),
			condition.Unknown("WithinBound", "ReportsMissing", "these sidecars are not connected, so they do not report what they have in flight: b"),
		},
		"no report at all": {
			newPoolScope(func(s *poolScope) { s.observation = coordinator.PoolObservation{} }),
			condition.Unknown("WithinBound", "NoTraffic", "no sidecar has reported a request"),
		},
		"the controller divides": {
			newPoolScope(), condition.True("CoordinatorReachable", "Reachable", "the leading controller divides the limit"),
		},
		"Redis divides": {
			newPoolScope(enforcing(func(p *policy.Pool) { p.Coordinator = policy.Store{Type: policy.RedisStore, Address: "redis:6379"} })),
			condition.True("CoordinatorReachable", "Reachable", "Redis at redis:6379 divides the limit"),
		},
		"the coordinator does not answer": {
			newPoolScope(reported(1, func(r *poolaudit.Report) { r.CoordinatorError, r.Fenced = "no route", true })),
			condition.False("CoordinatorReachable", "Unreachable", "the coordinator does not answer b (no route); without a share, so they refuse every request: b"),
		},
		"the coordinator never answered": {
			newPoolScope(reported(1, neverAnswered)),
			condition.False("CoordinatorReachable", "Unreachable", "the coordinator does not answer b (no route); without a share, so they refuse every request: b"),
		},
		"nobody has a share because the coordinator never answered": {
			newPoolScope(reported(0, neverAnswered), reported(1, neverAnswered), measuring(func(f *poolaudit.Figures) {
				f.Verdict, f.Limit, f.Granted, f.CutOff = audit.NoTraffic, 0, 0, 2
			})),
			condition.Unknown("Saturated", "Unreachable", "the coordinator does not answer, so no pod has a share of the limit and every request is refused"),
		},
		"the credentials cannot be had": {
			newPoolScope(func(s *poolScope) { s.credentials.err = errors.New("no secret") }),
			condition.False("CoordinatorReachable", "Unreachable", "no secret"),
		},
		"the coordinator lost its memory": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Quarantined = 1 })),
			condition.True("CoordinatorReachable", "Quarantined",
				"the coordinator has just lost its memory: until every share that it may have forgotten has expired, pods keep what they use and get no more"),
		},
		"there are slots": {
			newPoolScope(), condition.False("Saturated", "HasHeadroom",
				"limit 412 by Gradient2 between 8 and 4000, the median of what 2 pods infer: latency 26ms against 21ms without load"),
		},
		"no slot is left": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Saturated = true })), condition.True("Saturated", "AtLimit",
				"requests find no slot; limit 412 by Gradient2 between 8 and 4000, the median of what 2 pods infer: latency 26ms against 21ms without load"),
		},
		"no slot is left and the limit may not rise": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Saturated, f.Limit = true, 4000 })), condition.True("Saturated", "AtMax",
				"requests find no slot; limit 4000 is limit.max: by Gradient2 pods infer that the backend bears it, or more: latency 26ms against 21ms without load"),
		},
		"no slot is left and the limit may not fall": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Saturated, f.Limit = true, 8 })), condition.True("Saturated", "AtMin",
				"requests find no slot; limit 8 is limit.min: by Gradient2 pods infer that the backend bears no more, or less: latency 26ms against 21ms without load"),
		},
		"fewer slots than pods": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Saturated, f.Limit, f.Holders = true, 8, 9 })), condition.True("Saturated", "AtMin",
				"requests find no slot; limit 8 is limit.min: by Gradient2 pods infer that the backend bears no more, or less: latency 26ms against 21ms without load; "+
					"these are fewer slots than the 9 pods that share them, so some have none and refuse every request: raise limit.min"),
		},
		"fewer slots than pods, and no more may be": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Saturated, f.Limit, f.Holders = true, 1, 2 }),
				enforcing(func(p *policy.Pool) {
					p.Algorithm.Type, p.Limit = policy.FixedLimit, policy.LimitRange{Min: 1, Initial: 1, Max: 1}
				})),
			condition.True("Saturated", "AtMax", "requests find no slot; limit 1 is limit.max, since algorithm Fixed infers nothing; "+
				"these are fewer slots than the 2 pods that share them, so some have none and refuse every request: raise limit.max"),
		},
		"the limit is fixed": {
			newPoolScope(enforcing(func(p *policy.Pool) {
				p.Algorithm.Type, p.Limit = policy.FixedLimit, policy.LimitRange{Min: 412, Initial: 412, Max: 412}
			})),
			condition.False("Saturated", "HasHeadroom", "limit 412 is limit.max, since algorithm Fixed infers nothing"),
		},
		"nothing was measured": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Limit, f.Measuring = 16, 0 })),
			condition.False("Saturated", "HasHeadroom", "limit 16 is where it begins: no latency was measured yet"),
		},
		"nobody knows the limit": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Limit = 0 })),
			condition.Unknown("Saturated", "Starting", "no sidecar was sent the limit yet"),
		},
		"no request": {
			newPoolScope(measuring(func(f *poolaudit.Figures) { f.Verdict = audit.NoTraffic })),
			condition.Unknown("Saturated", "NoTraffic", "no sidecar has reported a request"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := poolConditionsOf(tc.scope)
			for _, got := range all {
				if got.Type == tc.want.Type {
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("condition (-want +got):\n%s", diff)
					}
				}
			}
			if all[0].Status == metav1.ConditionFalse && len(all) != 3 || all[0].Status == metav1.ConditionTrue && len(all) != 6 {
				t.Errorf("%d conditions: %v", len(all), all)
			}
		})
	}
}

func TestFiguresOfAnotherGenerationSayNothingOfThisOne(t *testing.T) {
	s := newPoolScope()
	o := s.observation
	o.Figures = &poolaudit.Figures{Generation: 3, Verdict: audit.Exceeded, Limit: 10, InFlight: 3, Overshoot: &poolaudit.Overshoot{Worst: 3}, UnderUtilization: &audit.UnderUtilization{}}
	s.observe(o)
	for _, c := range []metav1.Condition{poolWithinBound(s), saturated(s)} {
		if c.Reason != v1alpha1.StartingReason {
			t.Errorf("%s is %s, want Starting", c.Type, c.Reason)
		}
	}
	status := poolStatusOf(s)
	want := v1alpha1.PoolSummary{Pods: "2/2", Limit: "-", InFlight: "-", Overshoot: "-", Unused: "-", Latency: "-", Saturated: "-"}
	if diff := cmp.Diff(want, status.Summary); diff != "" || status.Limit != nil || status.Shares != nil || status.MeasuredAt != nil {
		t.Errorf("status = %+v, want no figures; columns (-want +got):\n%s", status, diff)
	}
	if o.Figures.Overshoot == nil {
		t.Error("the observation was changed")
	}
}

func poolNamed(name string, created time.Time, selected map[string]string) v1alpha1.ConcurrencyPool {
	return v1alpha1.ConcurrencyPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.Time{Time: created}},
		Spec:       v1alpha1.ConcurrencyPoolSpec{PodSelector: metav1.LabelSelector{MatchLabels: selected}},
	}
}

func TestWhichPodsAPoolLoses(t *testing.T) {
	pod := func(name string, labels ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{v1alpha1.EnforcerLabel: "true"}}}
		p.Status.Phase = corev1.PodRunning
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			p.Labels[key] = value
		}
		return p
	}
	mine := poolNamed("mine", now, map[string]string{"app": "web"})
	finishedPod := pod("done", "app=web", "tier=front")
	finishedPod.Status.Phase = corev1.PodSucceeded
	type dividing struct {
		others   []v1alpha1.ConcurrencyPool
		selected []*corev1.Pod
		own      []string
		conflict string // how it begins
	}
	tests := map[string]dividing{
		"nobody else":    {selected: []*corev1.Pod{pod("a", "app=web")}, own: []string{"a"}},
		"a younger pool": {others: []v1alpha1.ConcurrencyPool{poolNamed("a-younger", now.Add(time.Second), nil)}, selected: []*corev1.Pod{pod("a", "app=web")}, own: []string{"a"}},
		"other pods":     {others: []v1alpha1.ConcurrencyPool{poolNamed("older", now.Add(-time.Second), map[string]string{"app": "db"})}, selected: []*corev1.Pod{pod("a", "app=web")}, own: []string{"a"}},
		"an older pool":  {others: []v1alpha1.ConcurrencyPool{poolNamed("older", now.Add(-time.Second), nil)}, selected: []*corev1.Pod{pod("b", "app=web"), pod("a", "app=web")}, conflict: "pool older is older and applies to pods that both select: a, b;"},
		"some of the pods": {
			others:   []v1alpha1.ConcurrencyPool{poolNamed("older", now.Add(-time.Second), map[string]string{"tier": "front"})},
			selected: []*corev1.Pod{pod("a", "app=web", "tier=front"), pod("b", "app=web")}, own: []string{"b"},
			conflict: "pool older is older and applies to pods that both select: a;",
		},
		"only pods that are finished": {
			others:   []v1alpha1.ConcurrencyPool{poolNamed("older", now.Add(-time.Second), map[string]string{"tier": "front"})},
			selected: []*corev1.Pod{finishedPod, pod("b", "app=web")}, own: []string{"b"},
		},
		"an older pool and no pod yet": {
			others:   []v1alpha1.ConcurrencyPool{poolNamed("older", now.Add(-time.Second), nil)},
			conflict: "pool older is older and applies to pods that both select, such as those with ",
		},
	}
	matching := func(p v1alpha1.ConcurrencyPool) v1alpha1.ConcurrencyPool {
		p.Spec.Match = []v1alpha1.Match{{Methods: []v1alpha1.Method{"GET"}}}
		return p
	}
	tests["an older pool about some requests"] = dividing{
		others: []v1alpha1.ConcurrencyPool{matching(poolNamed("older", now.Add(-time.Second), nil))}, selected: []*corev1.Pod{pod("a", "app=web")}, own: []string{"a"},
	}
	var eight []v1alpha1.ConcurrencyPool
	for i := range policy.MaxPools {
		eight = append(eight, matching(poolNamed(fmt.Sprint("older-", i), now.Add(-time.Second), nil)))
	}
	tests["eight older pools"] = dividing{
		others: eight, selected: []*corev1.Pod{pod("a", "app=web")},
		conflict: "8 older pools apply to pods that this one selects, too, and no more may: a; narrow",
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &poolScope{pool: &mine}
			s.divide(tc.selected, append(tc.others, mine))
			var own []string
			for _, e := range s.pods.enforcers {
				own = append(own, e.name)
			}
			if diff := cmp.Diff(tc.own, own); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(s.conflict, tc.conflict) || (s.conflict == "") != (tc.conflict == "") {
				t.Errorf("conflict %q, want %q", s.conflict, tc.conflict)
			}
		})
	}
}

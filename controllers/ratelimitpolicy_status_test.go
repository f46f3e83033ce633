package controllers

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func limit(name string, rates ...v1alpha1.Rate) func(*scope) {
	return func(s *scope) {
		s.policy.Spec.Limits = append(s.policy.Spec.Limits, v1alpha1.Limit{Name: name, Rates: rates})
	}
}

func measuredFigures(observed, bound int64, unused int32) audit.Figures {
	return audit.Figures{
		Verdict:          audit.Measured,
		Flow:             meter.Flow{AdmittedPerSecond: 99.6, RejectedPerSecond: 312.4, RequestsPerRoundTrip: 82.4},
		ActiveKeys:       1,
		Overshoot:        &audit.Overshoot{WindowEnd: now, Observed: observed, Bound: bound, Worst: observed},
		UnderUtilization: &audit.UnderUtilization{Observed: unused, Worst: unused},
	}
}

func TestSummary(t *testing.T) {
	unbounded := measuredFigures(3, 0, 0)
	unbounded.Overshoot.Unbounded = true
	stale := measuredFigures(0, 0, 120)
	stale.Verdict = audit.ReportsMissing
	tests := map[string]struct {
		scope *scope
		want  v1alpha1.Summary
	}{
		"what was not measured is a dash, never a zero": {
			newScope(),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "-", Rejected: "-", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"a policy that is not accepted is enforced by nobody that could be counted": {
			newScope(func(s *scope) { s.invalid = errors.New("no") }),
			v1alpha1.Summary{Limits: "100/1s", Pods: "-", Admitted: "-", Rejected: "-", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"one limit": {
			newScope(enforcers("a", "b", "c"), acknowledged(4, "a", "b", "c"), figures("all", measuredFigures(0, 0, 120))),
			v1alpha1.Summary{Limits: "100/1s", Pods: "3/3", Admitted: "100/s", Rejected: "312/s", Overshoot: "0 ≤ 0", Unused: "1.2%", RequestsPerRoundTrip: "82.4"},
		},
		"figures of several limits add up, or the worst is shown": {
			newScope(limit("writes", v1alpha1.Rate{Limit: 5, Window: "1s"}, v1alpha1.Rate{Limit: 50, Window: "1m"}),
				enforcers("a"), acknowledged(3, "a"), figures("all", measuredFigures(4, 10, 0)), figures("writes", measuredFigures(3, 5, 250))),
			v1alpha1.Summary{Limits: "100/1s +2", Pods: "0/1", Admitted: "200/s", Rejected: "624/s", Overshoot: "3 ≤ 5", Unused: "2.5%", RequestsPerRoundTrip: "82.4"},
		},
		"a pod without a sidecar is one that does not enforce": {
			newScope(enforcers("a"), acknowledged(4, "a"), uninjected("b")),
			v1alpha1.Summary{Limits: "100/1s", Pods: "1/2", Admitted: "-", Rejected: "-", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"figures older than a window that was not reported are in question": {
			newScope(figures("all", stale)),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "100/s", Rejected: "312/s", Overshoot: "0 ≤ 0 ?", Unused: "1.2% ?", RequestsPerRoundTrip: "82.4"},
		},
		"so they are while a sidecar is not heard of": {
			newScope(enforcers("a"), figures("all", measuredFigures(0, 0, 120))),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/1", Admitted: "100/s", Rejected: "312/s", Overshoot: "0 ≤ 0 ?", Unused: "1.2% ?", RequestsPerRoundTrip: "82.4"},
		},
		"what was not measured is in no question": {
			newScope(figures("all", audit.Figures{Verdict: audit.ReportsMissing})),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "0/s", Rejected: "0/s", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"what is known only of a window before is not the last one's": {
			newScope(figures("all", audit.Figures{Verdict: audit.Exceeded, Overshoot: &audit.Overshoot{Worst: 30, WorstEnd: now}})),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "0/s", Rejected: "0/s", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"a broken bound is not said to hold": {
			newScope(figures("all", measuredFigures(3, 2, 0))),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "100/s", Rejected: "312/s", Overshoot: "3 > 2", Unused: "0.0%", RequestsPerRoundTrip: "82.4"},
		},
		"nothing bounds what is admitted uncounted": {
			newScope(figures("all", unbounded)),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "100/s", Rejected: "312/s", Overshoot: "3 ≤ ∞", Unused: "0.0%", RequestsPerRoundTrip: "82.4"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Window = v1alpha1.NotMeasured
			if diff := cmp.Diff(tc.want, statusOf(tc.scope).Summary); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	s := newScope(limit("writes", v1alpha1.Rate{Limit: 5, Window: "1s"}, v1alpha1.Rate{Limit: 50, Window: "1m"}),
		figures("all", measuredFigures(2, 10, 120)))
	want := []v1alpha1.LimitStatus{
		{
			Name: "all", Rates: "100/1s",
			AdmittedPerSecond: ptr.To[int64](100), RejectedPerSecond: ptr.To[int64](312), ActiveKeys: ptr.To[int64](1),
			RequestsPerRoundTrip: "82.4",
			WindowEnd:            &metav1.MicroTime{Time: now},
			Overshoot:            &v1alpha1.Overshoot{Bound: ptr.To[int64](10), Observed: ptr.To[int64](2), Worst: ptr.To[int64](2), Completeness: v1alpha1.Complete},
			UnderUtilization:     &v1alpha1.UnderUtilization{ObservedBasisPoints: ptr.To[int32](120), WorstBasisPoints: ptr.To[int32](120)},
		},
		{Name: "writes", Rates: "5/1s 50/1m"},
	}
	if diff := cmp.Diff(want, statusOf(s).Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestFiguresOfAnotherGenerationAreNotThisOnes(t *testing.T) {
	old := measuredFigures(9, 0, 100)
	old.Generation, old.Verdict = generation-1, audit.Exceeded
	s := newScope()
	s.observe(coordinator.Observation{Limits: []coordinator.LimitFigures{{Limit: "all", Figures: old}, {Limit: "removed", Figures: old}}})

	if got := withinBound(s).Reason; got != v1alpha1.StartingReason {
		t.Errorf("WithinBound is %s, want %s", got, v1alpha1.StartingReason)
	}
	want := []v1alpha1.LimitStatus{{
		Name: "all", Rates: "100/1s", RequestsPerRoundTrip: "82.4",
		AdmittedPerSecond: ptr.To[int64](100), RejectedPerSecond: ptr.To[int64](312), ActiveKeys: ptr.To[int64](1),
	}}
	if diff := cmp.Diff(want, statusOf(s).Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

// TestFiguresOfADeletedPolicyAreNotThoseOfItsNamesake: metadata.generation starts
// again, so by it alone the figures would look like those of the new object.
func TestFiguresOfADeletedPolicyAreNotThoseOfItsNamesake(t *testing.T) {
	s := newScope()
	s.policy.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	old := measuredFigures(0, 0, 0)
	old.Generation = translate.Generation(s.policy)
	s.policy.CreationTimestamp = metav1.NewTime(now)
	s.observe(coordinator.Observation{Limits: []coordinator.LimitFigures{{Limit: "all", Figures: old}}})

	if got := withinBound(s).Reason; got != v1alpha1.StartingReason {
		t.Errorf("WithinBound is %s, want %s", got, v1alpha1.StartingReason)
	}
	if got := statusOf(s).Summary; got.Overshoot != v1alpha1.NotMeasured || got.Unused != v1alpha1.NotMeasured {
		t.Errorf("summary %+v shows figures of the deleted policy", got)
	}
}

func TestGuarantee(t *testing.T) {
	allow := func(s *scope) { s.policy.Spec.OnStoreUnavailable.Action = v1alpha1.AllowAction }
	facts := store.Facts{
		Volatile: store.Keeping{Guarantee: store.Guarantee{Grade: store.HardExceptSplitBrain, Reason: "it has replicas"}},
		Durable:  store.Keeping{Guarantee: store.Guarantee{Grade: store.BestEffort, Reason: "it may lose a second"}},
	}
	lossless := facts
	lossless.Lossless, lossless.Durable.Guarantee = true, store.Guarantee{Grade: store.Hard}
	volatile, durable, resumes := limiter.Retention{}, limiter.Retention{Durable: true}, limiter.Retention{Durable: true, Resume: true}
	of := func(all ...limiter.Retention) func(*scope) {
		return func(s *scope) {
			for _, r := range all {
				s.enforced.Limits = append(s.enforced.Limits, policy.Limit{Name: "all", Retention: r})
			}
		}
	}
	const (
		taken    = "a controller that takes over grants nothing from windows whose grants it may not know"
		setAside = "the controller sets aside in the API server what it grants of limits whose counters are durable"
		resumed  = "; onMemoryLoss Resume goes on with the counts that are left, so each loss of memory of the store may admit at most one more limit in the windows that are open"
	)
	tests := map[string]struct {
		scope *scope
		want  *v1alpha1.Guarantee
	}{
		"the controller forgets nothing that it grants again": {
			newScope(),
			&v1alpha1.Guarantee{Grade: "Hard", Reason: "a controller that takes over grants nothing from windows whose grants it may not know"},
		},
		"admitting uncounted guarantees nothing": {
			newScope(allow),
			&v1alpha1.Guarantee{Grade: "BestEffort", Reason: "onStoreUnavailable.action Allow admits requests uncounted while the store is away"},
		},
		"the controller sets durable counters aside":     {newScope(of(durable)), &v1alpha1.Guarantee{Grade: "Hard", Reason: setAside}},
		"the controller keeps each limit by its own":     {newScope(of(volatile, durable)), &v1alpha1.Guarantee{Grade: "Hard", Reason: taken + ", and " + setAside}},
		"the controller loses nothing that it resumes":   {newScope(of(resumes)), &v1alpha1.Guarantee{Grade: "Hard", Reason: setAside}},
		"a server speaks for what it may forget":         {newScope(onRedis(facts, nil), of(volatile)), &v1alpha1.Guarantee{Grade: "HardExceptSplitBrain", Reason: "it has replicas"}},
		"a server speaks for what it keeps":              {newScope(onRedis(facts, nil), of(durable)), &v1alpha1.Guarantee{Grade: "BestEffort", Reason: "it may lose a second"}},
		"of both the weakest counts":                     {newScope(onRedis(facts, nil), of(volatile, durable)), &v1alpha1.Guarantee{Grade: "BestEffort", Reason: "it may lose a second"}},
		"of both the weakest counts, whichever it is":    {newScope(onRedis(lossless, nil), of(volatile, durable)), &v1alpha1.Guarantee{Grade: "HardExceptSplitBrain", Reason: "it has replicas"}},
		"going on after a loss is not a promise":         {newScope(onRedis(facts, nil), of(resumes)), &v1alpha1.Guarantee{Grade: "BestEffort", Reason: "it may lose a second" + resumed}},
		"going on where nothing is lost is one":          {newScope(onRedis(lossless, nil), of(resumes)), &v1alpha1.Guarantee{Grade: "Hard", Reason: hardReason}},
		"nothing is guaranteed of a server out of reach": {newScope(onRedis(store.Facts{}, errors.New("timeout"))), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, guarantee(tc.scope)); diff != "" {
				t.Errorf("guarantee (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectPods(t *testing.T) {
	sidecar := map[string]string{v1alpha1.EnforcerLabel: "true"}
	pod := func(name string, labels map[string]string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "x", Labels: labels},
			Status:     corev1.PodStatus{Phase: phase},
		}
	}
	leaving := pod("leaving", sidecar, corev1.PodRunning)
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	exposed := pod("exposed", sidecar, corev1.PodRunning)
	exposed.Annotations = map[string]string{v1alpha1.InjectedAnnotation: `{"capture":"port","ports":[{"name":"http","listen":15006,"app":8080}]}`}
	exposed.Spec.Containers = []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 80}}}}
	exposed.Spec.InitContainers = []corev1.Container{{Name: "weir", Image: "weir", Ports: []corev1.ContainerPort{{ContainerPort: 15006}}}}
	exposed.Namespace, exposed.ResourceVersion, exposed.DeletionTimestamp = "shop", "7", &metav1.Time{Time: now}
	exposed.Annotations["other"], exposed.Spec.NodeName = "x", "node"
	trimmed, err := trimPod(exposed)
	if err != nil {
		t.Fatal(err)
	}
	kept := exposed.DeepCopy()
	delete(kept.Annotations, "other")
	kept.Spec.NodeName, kept.Spec.Containers[0].Image, kept.Spec.InitContainers[0].Image = "", "", ""
	if diff := cmp.Diff(kept, trimmed); diff != "" {
		t.Errorf("trimPod keeps (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"controller": "10.0.0.1", "app": ""} {
		p := pod(name, map[string]string{"app.kubernetes.io/name": "weir", "app.kubernetes.io/component": name}, corev1.PodRunning)
		p.Status.PodIP = "10.0.0.1"
		if kept, err := trimPod(p); err != nil || kept.(*corev1.Pod).Status.PodIP != want {
			t.Errorf("trimPod keeps of %s: %+v, %v; want the address %q", name, kept, err, want)
		}
	}
	trimmed.(*corev1.Pod).DeletionTimestamp, exposed.DeletionTimestamp = nil, nil
	starting := exposed.DeepCopy()
	starting.Name, starting.Status.Phase = "starting", corev1.PodPending
	got := selectPods([]*corev1.Pod{
		trimmed.(*corev1.Pod),
		starting,
		pod("running", sidecar, corev1.PodRunning),
		pod("pending", sidecar, corev1.PodPending),
		pod("done", sidecar, corev1.PodSucceeded),
		pod("failed", sidecar, corev1.PodFailed),
		leaving,
		pod("z-bare", nil, corev1.PodRunning),
		pod("bare", map[string]string{v1alpha1.EnforcerLabel: "false"}, corev1.PodRunning),
		pod("bare-pending", nil, corev1.PodPending),
	})
	want := pods{
		enforcers:  []enforcer{{"exposed", "uid-x", true}, {"pending", "uid-x", false}, {"running", "uid-x", true}, {"starting", "uid-x", false}},
		exposed:    []string{"exposed (host port 80)"},
		leaving:    []enforcer{{"leaving", "uid-x", true}},
		uninjected: []string{"bare", "z-bare"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pods{}, enforcer{})); diff != "" {
		t.Errorf("selectPods (-want +got):\n%s", diff)
	}
}

func TestWriteDelay(t *testing.T) {
	every := figuresIntervalOf("uid")
	if every < figuresInterval || every > figuresInterval+figuresJitter {
		t.Fatalf("figures are due every %s", every)
	}
	base := newScope(enforcers("a", "b"), acknowledged(4, "a", "b"), figures("all", measuredFigures(0, 0, 0)))
	tests := map[string]struct {
		change  func(*scope)
		since   time.Duration
		wait    time.Duration
		changed bool
	}{
		"nothing changed": {
			change: func(*scope) {}, since: time.Hour,
		},
		"the same figures of a later window are not a change": {
			change: func(s *scope) {
				s.now = s.now.Add(time.Minute)
				s.observation.Limits[0].Overshoot = &audit.Overshoot{WindowEnd: now.Add(time.Minute)}
			},
			since: time.Hour,
		},
		"a condition that turns is written at once": {
			change:  func(s *scope) { s.observation.Sessions = s.observation.Sessions[:1] },
			changed: true,
		},
		"a condition for another reason is written at once": {
			change: uninjected("c"), changed: true,
		},
		"a new generation is written at once": {
			change: func(s *scope) { s.policy.Generation++ }, changed: true,
		},
		"another message waits for the rest of a second": {
			change: func(s *scope) { s.doubts = []string{"spec: odd"} }, since: 300 * time.Millisecond,
			wait: 700 * time.Millisecond, changed: true,
		},
		"another message is written after a second": {
			change: func(s *scope) { s.doubts = []string{"spec: odd"} }, since: 2 * time.Second, changed: true,
		},
		"figures wait for their turn": {
			change: func(s *scope) { s.observation.Limits[0].Flow.AdmittedPerSecond++ }, since: 10 * time.Second,
			wait: every - 10*time.Second, changed: true,
		},
		"figures are written in their turn": {
			change: func(s *scope) { s.observation.Limits[0].Flow.AdmittedPerSecond++ }, since: every, changed: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := statusOf(base)
			s := *base
			s.enforcing = nil // it is of base
			policy := *base.policy
			policy.Status = have
			s.policy = &policy
			s.observation.Limits = append([]coordinator.LimitFigures(nil), base.observation.Limits...)
			tc.change(&s)
			next := statusOf(&s)
			wait, changed := writeDelay(changeOf(&have, &next), "uid", tc.since)
			if wait != tc.wait || changed != tc.changed {
				t.Errorf("writeDelay is (%s, %v), want (%s, %v)", wait, changed, tc.wait, tc.changed)
			}
		})
	}
}

func TestCountersOfSeveralValuesAreNamed(t *testing.T) {
	for value, want := range map[string]bool{"gold": false, policy.MissingValue(): true, store.Shared(7): true} {
		keys := []audit.HotKey{{KeyCount: audit.KeyCount{Hash: store.HashValue(value)}}}
		if got := hottest(keys, now)[0].Shared; got != want {
			t.Errorf("%q is shared: %v, want %v", value, got, want)
		}
	}
}

package controllers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/pkg/policy"
)

// keyed gives the pool a limit per key, and figures of it that pods reported.
func keyed(change func(*poolaudit.Figures)) func(*poolScope) {
	return func(s *poolScope) {
		s.enforced.Key = &policy.PoolKey{Limit: 20}
		s.observation.Keys = &poolaudit.Figures{
			Generation: 4, Verdict: audit.Measured, Limit: 20, Holders: 2, InFlight: 13, Queued: 4, RejectedPerSecond: 3.6, Overshoot: &poolaudit.Overshoot{},
		}
		for i, share := range []int64{11, 9} {
			s.observation.Sessions[i].Keys = &poolaudit.Report{Share: share, Ceiling: share}
		}
		change(s.observation.Keys)
	}
}

func asMeasured(*poolaudit.Figures) {}

func TestStatusOfALimitPerKey(t *testing.T) {
	got := poolStatusOf(newPoolScope(keyed(asMeasured))).Keys
	want := &v1alpha1.PoolKeysStatus{
		Limit: 20, InFlight: new(int64(13)), Queued: new(int64(4)), SmallestShare: new(int64(9)), RejectedPerSecond: new(int64(4)),
		Overshoot: &v1alpha1.Overshoot{Observed: new(int64(0)), Worst: new(int64(0)), Bound: new(int64(0))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	s := newPoolScope(keyed(func(f *poolaudit.Figures) { f.KeyMissingPerSecond = 2.6 }))
	if got := poolStatusOf(s).Keys.MissingPerSecond; got != nil {
		t.Errorf("%d requests without the key are refused where none is", *got)
	}
	s.enforced.Key.OnMissing = policy.Reject
	if got := poolStatusOf(s).Keys.MissingPerSecond; got == nil || *got != 3 {
		t.Errorf("%v requests without the key are refused, want 3", got)
	}
	for name, s := range map[string]*poolScope{
		"before an answer":       newPoolScope(keyed(func(f *poolaudit.Figures) { f.Limit = 0 })),
		"of a generation before": newPoolScope(keyed(func(f *poolaudit.Figures) { f.Pending = true })),
		"without a key":          newPoolScope(),
	} {
		if got := poolStatusOf(s).Keys; got != nil {
			t.Errorf("%s: %+v, want nothing", name, got)
		}
	}
}

func TestFiguresOfAKeyAreOfThisGeneration(t *testing.T) {
	s := newPoolScope(keyed(func(f *poolaudit.Figures) { f.Generation = 3 }))
	s.observe(s.observation)
	if f := s.observation.Keys; f == nil || !f.Pending || f.Overshoot != nil || f.Verdict != audit.Starting {
		t.Errorf("figures %+v of a generation before, want them pending", f)
	}
	s.enforced.Key = nil
	s.observe(s.observation)
	if f := s.observation.Keys; f != nil {
		t.Errorf("figures %+v of a key that is gone", f)
	}
}

// The condition WithinBound is of both limits, and shows the one about which less good is known.
func TestTheBoundIsOfEveryValueToo(t *testing.T) {
	within := "what was in flight stayed within the limit; worst overshoot 0"
	over := func(f *poolaudit.Figures) {
		f.Verdict, f.Overshoot = audit.Exceeded, &poolaudit.Overshoot{Worst: 7, WorstTime: now}
	}
	exceeded := "up to 7 requests more than the limit allows were in flight at 2026-11-20T10:15:00.000Z"
	starting := "nothing was measured yet since this controller took over or the pool changed"
	for name, tc := range map[string]struct {
		scope           *poolScope
		status          metav1.ConditionStatus
		reason, message string
	}{
		"both":               {newPoolScope(keyed(asMeasured)), metav1.ConditionTrue, "Measured", within + "; by value of the key, " + within},
		"a value is beyond":  {newPoolScope(keyed(over)), metav1.ConditionFalse, "BoundExceeded", "by value of the key, " + exceeded},
		"the pool is beyond": {newPoolScope(keyed(asMeasured), measuring(over)), metav1.ConditionFalse, "BoundExceeded", exceeded},
		"both are beyond":    {newPoolScope(keyed(over), measuring(over)), metav1.ConditionFalse, "BoundExceeded", exceeded},
		"a value is not known": {
			newPoolScope(keyed(func(f *poolaudit.Figures) { f.Verdict = audit.Starting })), metav1.ConditionUnknown, "Starting", "by value of the key, " + starting,
		},
		"a value is beyond, and the pool is not known": {
			newPoolScope(keyed(over), measuring(func(f *poolaudit.Figures) { f.Verdict = audit.Starting })), metav1.ConditionFalse, "BoundExceeded", "by value of the key, " + exceeded,
		},
		"the pool is not known": {
			newPoolScope(keyed(asMeasured), measuring(func(f *poolaudit.Figures) { f.Verdict = audit.Starting })), metav1.ConditionUnknown, "Starting", starting,
		},
		"no request has the key": {newPoolScope(keyed(func(f *poolaudit.Figures) { f.Verdict = audit.NoTraffic })), metav1.ConditionTrue, "Measured", within},
	} {
		c := meta.FindStatusCondition(poolConditionsOf(tc.scope), v1alpha1.WithinBoundCondition)
		if c.Status != tc.status || c.Reason != tc.reason || c.Message != tc.message {
			t.Errorf("%s: %s, %s, %q; want %s, %s, %q", name, c.Status, c.Reason, c.Message, tc.status, tc.reason, tc.message)
		}
	}
}

func TestALimitPerKeyThatDoesNotGoRoundIsNamed(t *testing.T) {
	s := newPoolScope(keyed(func(f *poolaudit.Figures) { f.Limit, f.Holders = 2, 3 }))
	c := meta.FindStatusCondition(poolConditionsOf(s), v1alpha1.SaturatedCondition)
	want := "limit 412 by Gradient2 between 8 and 4000, the median of what 2 pods infer: latency 26ms against 21ms without load; " +
		"every value of the key has 2 slots, fewer than the 3 pods that share them, so some have none and refuse every request that has the key: raise key.limit"
	if c.Message != want {
		t.Errorf("it says %q, want %q", c.Message, want)
	}
}

// A coordinator that does not answer for the key alone is unreachable.
func TestACoordinatorIsUnreachableForAKey(t *testing.T) {
	s := newPoolScope(keyed(asMeasured))
	s.observation.Sessions[1].Keys.CoordinatorError = "no route"
	c := meta.FindStatusCondition(poolConditionsOf(s), v1alpha1.CoordinatorReachableCondition)
	if c.Status != metav1.ConditionFalse || c.Message != "the coordinator does not answer b (no route)" {
		t.Errorf("%s: %q", c.Status, c.Message)
	}
	s.observation.Sessions[1].Keys.Share, s.observation.Sessions[1].Keys.Fenced = 0, true
	c = meta.FindStatusCondition(poolConditionsOf(s), v1alpha1.CoordinatorReachableCondition)
	if want := "the coordinator does not answer b (no route); without a share of the limit per key, so they refuse every request that has the key: b"; c.Message != want {
		t.Errorf("it says %q, want %q", c.Message, want)
	}
	s.observation.Sessions[1].Report.Share, s.observation.Sessions[1].Report.Fenced = 0, true
	c = meta.FindStatusCondition(poolConditionsOf(s), v1alpha1.CoordinatorReachableCondition)
	if want := "the coordinator does not answer b (no route); without a share, so they refuse every request: b"; c.Message != want {
		t.Errorf("it says %q, want %q", c.Message, want)
	}
}

// A key that is new to a coordinator which keeps the pool for longer is in quarantine by itself.
func TestAKeyInQuarantineIsShown(t *testing.T) {
	s := newPoolScope(keyed(func(f *poolaudit.Figures) { f.Quarantined = 1 }))
	c := meta.FindStatusCondition(poolConditionsOf(s), v1alpha1.CoordinatorReachableCondition)
	if c.Status != metav1.ConditionTrue || c.Reason != "Quarantined" || !strings.Contains(c.Message, "refuse other requests that have the key") {
		t.Errorf("%s, %s: %q", c.Status, c.Reason, c.Message)
	}
}

// A pod that refused an edit may go by other requests or other values, which nothing bounds.
func TestPodsThatGoByWhatWasBeforeAreNamed(t *testing.T) {
	parts := func(header string) []policy.KeyPart {
		return []policy.KeyPart{{Type: policy.HeaderKey, Header: header}}
	}
	of := func(generation int64, change func(*policy.Pool)) *policy.Pool {
		p := &policy.Pool{
			Generation: generation, Match: []policy.Match{{Methods: []string{"GET"}}}, Exempt: []policy.Match{{Methods: []string{"PUT"}}},
			Key: &policy.PoolKey{Parts: parts("x-tenant"), OnMissing: policy.Shared, Limit: 20},
		}
		change(p)
		return p
	}
	same := func(*policy.Pool) {}
	other, perKey := "these pods give slots to the requests that an earlier generation selects", "by value of the key, these pods"
	for name, tc := range map[string]struct {
		before *policy.Pool
		want   string // how it begins, empty when the bound is True
	}{
		"it never had one":       {nil, ""},
		"it has this one":        {of(4, same), ""},
		"with another limit":     {of(3, func(p *policy.Pool) { p.Key.Limit = 5 }), ""},
		"with other parts":       {of(3, func(p *policy.Pool) { p.Key.Parts = parts("x-model") }), perKey},
		"with another onMissing": {of(3, func(p *policy.Pool) { p.Key.OnMissing = policy.Skip }), perKey},
		"without a key":          {of(3, func(p *policy.Pool) { p.Key = nil }), perKey},
		"with another match":     {of(3, func(p *policy.Pool) { p.Match[0].Methods[0] = "POST" }), other},
		"with another exemption": {of(3, func(p *policy.Pool) { p.Exempt = nil }), other},
	} {
		s := newPoolScope(keyed(asMeasured))
		now := of(4, same)
		s.enforced.Match, s.enforced.Exempt, s.enforced.Key = now.Match, now.Exempt, now.Key
		s.observation.Sessions[1].Enforced = tc.before
		c := meta.FindStatusCondition(poolConditionsOf(s), v1alpha1.WithinBoundCondition)
		switch {
		case tc.want == "" && c.Status != metav1.ConditionTrue:
			t.Errorf("%s: %s, %q; want the bound to be measured", name, c.Status, c.Message)
		case tc.want != "" && (c.Reason != v1alpha1.PodsNotLimitedReason || !strings.HasPrefix(c.Message, tc.want) || !strings.Contains(c.Message, "values of its key: b; the condition")):
			t.Errorf("%s: %s, %q; want b to be named: %q", name, c.Reason, c.Message, tc.want)
		}
	}
}

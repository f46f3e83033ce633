package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestAWindowIsJudgedByRequestsThatReachedTheApp(t *testing.T) {
	for name, tc := range map[string]struct {
		offered, admitted int64
		wantOver          int64
		wantUnused        float64
	}{
		"the limit and no more under overload":    {offered: 2000, admitted: 500},
		"all of a small demand":                   {offered: 200, admitted: 200},
		"more than the limit is overshoot":        {offered: 2000, admitted: 501, wantOver: 1},
		"less than could be had is unused":        {offered: 2000, admitted: 400, wantUnused: 20},
		"less than a small demand is unused, too": {offered: 200, admitted: 100, wantUnused: 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := window{limit: 500, offered: tc.offered, admitted: tc.admitted}
			over, overKnown := w.overshoot()
			unused, unusedKnown := w.unused()
			if !overKnown || !unusedKnown || over != tc.wantOver || unused != tc.wantUnused {
				t.Errorf("Δ %d and U %v (known: %v, %v), want %d and %v", over, unused, overKnown, unusedKnown, tc.wantOver, tc.wantUnused)
			}
		})
	}
}

func TestAWindowReturnsOnlyCertainFigures(t *testing.T) {
	for name, tc := range map[string]struct {
		window               window
		wantOver, wantUnused bool
	}{
		"one rate from start to end":        {wantOver: true, wantUnused: true},
		"an edit changes the budget":        {window: window{edited: true}, wantOver: true},
		"another rate may refuse":           {window: window{shared: true}, wantOver: true},
		"without a policy there is neither": {window: window{unbounded: "no policy inside it"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.window.limit = 500
			_, over := tc.window.overshoot()
			_, unused := tc.window.unused()
			if over != tc.wantOver || unused != tc.wantUnused {
				t.Errorf("Δ known: %v, U known: %v; want %v, %v", over, unused, tc.wantOver, tc.wantUnused)
			}
		})
	}
}

func TestHistoryFollowsThePolicy(t *testing.T) {
	const none = "no policy inside it"
	policy := func(id string, limit int64, length time.Duration) policyView {
		return policyView{id: id, limit: limit, window: length}
	}
	setBack := func(v policyView, when time.Time) policyView {
		done := v1alpha1.ResetStatus{Phase: v1alpha1.ResetDone, Time: &metav1.Time{Time: when}}
		v.reset = reset(&v1alpha1.RateLimitPolicy{Status: v1alpha1.RateLimitPolicyStatus{Reset: &done}})
		return v
	}
	type look struct {
		second int
		policy policyView
	}
	for name, tc := range map[string]struct {
		looks []look
		want  []window
	}{
		"a limit raised and lowered counts as the highest, and later windows are clean": {
			looks: []look{
				{7, policy("1", 500, 20*time.Second)},
				{8, policy("2", 600, 20*time.Second)},
				{9, policy("3", 100, 20*time.Second)},
				{21, policy("3", 100, 20*time.Second)},
			},
			want: []window{
				{start: at(0), length: 20 * time.Second, limit: 600, edited: true},
				{start: at(20), length: 20 * time.Second, limit: 100, whole: true},
			},
		},
		"a new length begins when the open window ends, and not before its own window": {
			looks: []look{
				{25, policy("1", 500, 20*time.Second)},
				{33, policy("2", 100, 30*time.Second)},
				{41, policy("2", 100, 30*time.Second)},
				{61, policy("2", 100, 30*time.Second)},
			},
			want: []window{
				{start: at(20), length: 20 * time.Second, limit: 500, whole: true, edited: true},
				{start: at(30), length: 30 * time.Second, limit: 100, whole: true, edited: true, unbounded: "shares time with the window before it"},
				{start: at(60), length: 30 * time.Second, limit: 100, whole: true},
			},
		},
		"an edit seen at a window's start may belong to the one before": {
			looks: []look{{37, policy("1", 500, 20*time.Second)}, {40, policy("2", 100, 20*time.Second)}},
			want: []window{
				{start: at(20), length: 20 * time.Second, limit: 500, whole: true, edited: true},
				{start: at(40), length: 20 * time.Second, limit: 500, whole: true, edited: true},
			},
		},
		"a window inside which the counter was set back has no bound": {
			looks: []look{
				{21, policy("1", 500, 20*time.Second)},
				{45, setBack(policy("1", 500, 20*time.Second), at(44))},
				{61, setBack(policy("1", 500, 20*time.Second), at(44))},
			},
			want: []window{
				{start: at(20), length: 20 * time.Second, limit: 500, whole: true},
				{start: at(40), length: 20 * time.Second, limit: 500, whole: true, unbounded: "set back inside it: the limit was admitted once more"},
				{start: at(60), length: 20 * time.Second, limit: 500, whole: true},
			},
		},
		"windows without the policy go on and have no bound": {
			looks: []look{
				{21, policy("1", 500, 20*time.Second)},
				{38, policyView{unbounded: none}},
				{41, policyView{unbounded: none}},
				{65, policy("2", 500, 20*time.Second)},
				{81, policy("2", 500, 20*time.Second)},
			},
			want: []window{
				{start: at(20), length: 20 * time.Second, limit: 500, whole: true, edited: true, unbounded: none},
				{start: at(40), length: 20 * time.Second, limit: 500, whole: true, edited: true, unbounded: none},
				{start: at(60), length: 20 * time.Second, limit: 500, whole: true, edited: true, unbounded: none},
				{start: at(80), length: 20 * time.Second, limit: 500, whole: true},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := history{began: at(5)}
			for _, l := range tc.looks {
				h.open(at(l.second), l.policy)
			}
			if diff := cmp.Diff(tc.want, h.windows, cmp.AllowUnexported(window{})); diff != "" {
				t.Errorf("windows (-want +got):\n%s", diff)
			}
		})
	}
}

// at returns an instant at which windows of 10, 20 and 30 seconds begin together,
// and seconds after it.
func at(second int) time.Time { return time.Unix(int64(1200+second), 0) }

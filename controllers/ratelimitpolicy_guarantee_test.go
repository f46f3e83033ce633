package controllers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

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

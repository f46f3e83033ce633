package translate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
)

// Snapshot returns everything that a pod with these labels enforces: the
// policies of its namespace that select it and the pools that apply to it, each ordered
// by name. At most one of them has no match. Budgets are those of the namespace. Cluster names the
// counters' owner and is not empty. It does not change what it is given.
//
// A policy or pool that does not translate is left out. So is a policy when a budget is
// missing that one of its limits draws from, or when it cannot be known whether it selects
// the pod. Then the error is a *PartialError and the snapshot is all the rest. It is for a
// pod that has nothing better: where what is left out is in force, a snapshot without it
// would lift a limit. There is no other error.
func Snapshot(cluster string, all []v1alpha1.RateLimitPolicy, budgets Budgets, pools []*v1alpha1.ConcurrencyPool, namespace string, podLabels map[string]string) (policy.Snapshot, error) {
	snapshot := policy.Snapshot{Cluster: cluster}
	var errs []error
	for i := range all {
		p := &all[i]
		if p.Namespace != namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err == nil && !selector.Matches(labels.Set(podLabels)) {
			continue
		}
		translated, err := Policy(p, budgets)
		if err != nil {
			errs = append(errs, fmt.Errorf("RateLimitPolicy %s/%s: %w", p.Namespace, p.Name, err))
			continue
		}
		snapshot.Policies = append(snapshot.Policies, translated)
	}
	for _, pool := range pools {
		translated, err := Pool(pool)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("ConcurrencyPool %s/%s: %w", pool.Namespace, pool.Name, err))
		case translated.Match == nil:
			snapshot.Pool = &translated
		default:
			snapshot.Pools = append(snapshot.Pools, translated)
		}
	}
	slices.SortFunc(snapshot.Pools, func(a, b policy.Pool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(snapshot.Policies, func(a, b policy.Policy) int { return cmp.Compare(a.Name, b.Name) })
	if len(errs) > 0 {
		return snapshot, &PartialError{errs}
	}
	return snapshot, nil
}

// A PartialError says what a snapshot is without, and why.
type PartialError struct{ leftOut []error }

// Error names each object that was left out, what is wrong with it and the cure.
func (e *PartialError) Error() string { return errors.Join(e.leftOut...).Error() }

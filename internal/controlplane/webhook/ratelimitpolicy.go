package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// PolicyValidator reports to the author of a RateLimitPolicy what is wrong with it and
// what is doubtful, budgets that are not there and a Redis that forgets among it.
type PolicyValidator struct {
	Cluster string        // this cluster as a member of budgets
	IDs     resolve.IDs   // that budgets may have
	Cache   client.Reader // of budgets and policies; it may be behind
}

var _ admission.Validator[*v1alpha1.RateLimitPolicy] = PolicyValidator{}

// ValidateCreate refuses a policy that cannot be enforced, naming every field.
func (v PolicyValidator) ValidateCreate(ctx context.Context, p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	warnings, faults := translate.Validate(p, v.budgets(ctx, p))
	if len(faults) > 0 {
		kind := v1alpha1.GroupVersion.WithKind("RateLimitPolicy").GroupKind()
		return warnings, apierrors.NewInvalid(kind, p.Name, faults)
	}
	return append(warnings, translate.RestartDoubts(p, v.restarts(ctx))...), nil
}

// ValidateUpdate does the same for a changed spec. A policy that was stored under
// older rules can still be labelled and deleted.
func (v PolicyValidator) ValidateUpdate(ctx context.Context, old, p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(old.Spec, p.Spec) {
		return nil, nil
	}
	return v.ValidateCreate(ctx, p)
}

// ValidateDelete has nothing against a deletion.
func (PolicyValidator) ValidateDelete(context.Context, *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	return nil, nil
}

// budgets returns those that the policy may draw from. A failure to read them is not a
// fault of the policy.
func (v PolicyValidator) budgets(ctx context.Context, p *v1alpha1.RateLimitPolicy) translate.Budgets {
	if !translate.Draws(p) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := resolve.ReadBudgets(ctx, v.Cache, v.Cluster, v.IDs)
	if err != nil {
		return func(string) (policy.FederatedBudget, error) {
			return policy.FederatedBudget{}, fmt.Errorf("it is not known whether it exists (%w): see the condition Accepted", err)
		}
	}
	return all.In(p.Namespace)
}

// restarts returns what the statuses of policies say of a store. Its server is not asked: it
// may be slow, and only the controller has its credentials. The worse of two that differ
// counts.
func (v PolicyValidator) restarts(ctx context.Context) translate.Restarts {
	return func(of policy.Store) (known v1alpha1.StoreRestart) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		var all v1alpha1.RateLimitPolicyList
		if err := v.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return "" // the status will say it
		}
		for i := range all.Items {
			other := &all.Items[i]
			store := other.Status.Store
			if store == nil || store.Restart == "" || !current(other.Status.Conditions) {
				continue
			}
			if serving, _, _ := translate.Serving(other); serving.Server() != of.Server() {
				continue
			}
			if known = store.Restart; known == v1alpha1.LossyRestart {
				break
			}
		}
		return known
	}
}

// current reports whether the controller goes on asking the store of a policy with these
// conditions, and is answered. It does not ask again for a policy without sidecars.
func current(conditions []metav1.Condition) bool {
	programmed := meta.FindStatusCondition(conditions, v1alpha1.ProgrammedCondition)
	return programmed != nil && programmed.Reason != v1alpha1.NoEnforcersReason &&
		meta.IsStatusConditionTrue(conditions, v1alpha1.StoreReachableCondition)
}

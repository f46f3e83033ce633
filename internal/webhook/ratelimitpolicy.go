package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/resolve"
	"github.com/weir-dev/weir/internal/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// PolicyValidator tells the author of a RateLimitPolicy what is wrong with it and
// what is doubtful, budgets that are not there among it.
type PolicyValidator struct {
	Cluster string        // this cluster as a member of budgets
	Budgets client.Reader // of the cache, which may be behind
}

var _ admission.Validator[*v1alpha1.RateLimitPolicy] = PolicyValidator{}

// ValidateCreate refuses a policy that cannot be enforced, naming every field.
func (v PolicyValidator) ValidateCreate(ctx context.Context, p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	warnings, faults := translate.Validate(p, v.budgets(ctx, p))
	if len(faults) > 0 {
		kind := v1alpha1.GroupVersion.WithKind("RateLimitPolicy").GroupKind()
		return warnings, apierrors.NewInvalid(kind, p.Name, faults)
	}
	return warnings, nil
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

// budgets returns those that the policy may draw from. That they cannot be read is no
// fault of the policy.
func (v PolicyValidator) budgets(ctx context.Context, p *v1alpha1.RateLimitPolicy) translate.Budgets {
	if !translate.Draws(p) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := resolve.ReadBudgets(ctx, v.Budgets, v.Cluster)
	if err != nil {
		return func(string) (policy.FederatedBudget, error) {
			return policy.FederatedBudget{}, fmt.Errorf("it is not known whether it exists (%w): see the condition Accepted", err)
		}
	}
	return all.In(p.Namespace)
}

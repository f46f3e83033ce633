package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// BudgetValidator reports to the author of a FederatedBudget what is wrong with it and what
// is doubtful, another one with its id and policies that it cannot serve among it.
type BudgetValidator struct {
	Cluster string        // this cluster as a member of budgets
	IDs     resolve.IDs   // that budgets may have
	Cache   client.Reader // of budgets and policies; it may be behind
}

var _ admission.Validator[*v1alpha1.FederatedBudget] = BudgetValidator{}

// ValidateCreate refuses a budget that cannot be divided, or whose namespace may not have its
// id, naming every field.
func (v BudgetValidator) ValidateCreate(ctx context.Context, b *v1alpha1.FederatedBudget) (admission.Warnings, error) {
	warnings, faults := translate.ValidateBudget(b, v.Cluster)
	if err := v.IDs.Permit(b.Namespace, b.Spec.ID); err != nil {
		faults = append(faults, field.Forbidden(field.NewPath("spec", "id"), err.Error()))
	}
	if len(faults) > 0 {
		kind := v1alpha1.GroupVersion.WithKind("FederatedBudget").GroupKind()
		return warnings, apierrors.NewInvalid(kind, b.Name, faults)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return append(warnings, slices.Concat(v.conflicts(ctx, b), v.unserved(ctx, b), v.unkeyed(ctx, b))...), nil
}

// ValidateUpdate does the same for a changed spec. A budget that was stored under older
// rules can still be labelled and deleted.
func (v BudgetValidator) ValidateUpdate(ctx context.Context, old, b *v1alpha1.FederatedBudget) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(old.Spec, b.Spec) {
		return nil, nil
	}
	return v.ValidateCreate(ctx, b)
}

// ValidateDelete has nothing against a deletion.
func (BudgetValidator) ValidateDelete(context.Context, *v1alpha1.FederatedBudget) (admission.Warnings, error) {
	return nil, nil
}

// conflicts warns of another object with the id. It is not a fault: which of the two counts
// is defined, and one that takes over is made beside the other.
func (v BudgetValidator) conflicts(ctx context.Context, b *v1alpha1.FederatedBudget) []string {
	var all v1alpha1.FederatedBudgetList
	if err := v.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return []string{fmt.Sprintf("spec.id: it is not known whether another FederatedBudget has the same (%v): see the condition Accepted", err)}
	}
	name := client.ObjectKeyFromObject(b)
	resolved := resolve.NewBudgets(with(all.Items, b), v.Cluster, v.IDs)
	if conflict, ok := errors.AsType[*resolve.ConflictError](resolved.Named(name).Err); ok {
		return []string{fmt.Sprintf("spec.id: %v", conflict)}
	}
	for _, other := range resolved.All() {
		if _, denied := errors.AsType[*resolve.IDError](other.Err); !denied && other.ID == b.Spec.ID && other.Object != name {
			return []string{fmt.Sprintf("spec.id: FederatedBudget %s has the same; this one is older and counts: delete one of the two", other.Object)}
		}
	}
	return nil
}

// with returns the budgets with b as it would be.
func with(all []v1alpha1.FederatedBudget, b *v1alpha1.FederatedBudget) []v1alpha1.FederatedBudget {
	out := []v1alpha1.FederatedBudget{*b}
	for i := range all {
		if all[i].Namespace != b.Namespace || all[i].Name != b.Name {
			out = append(out, all[i])
		}
	}
	return out
}

// unserved warns of policies with fairness that draw from the budget: an escrow in
// Redis cannot split units over tenants.
func (v BudgetValidator) unserved(ctx context.Context, b *v1alpha1.FederatedBudget) []string {
	if b.Spec.Escrow.Type != v1alpha1.RedisEscrow {
		return nil
	}
	var policies v1alpha1.RateLimitPolicyList
	if err := v.Cache.List(ctx, &policies, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return []string{fmt.Sprintf("spec.escrow.type: it is not known whether limits with fairness draw from the budget (%v): see the condition Accepted of their policies", err)}
	}
	var warnings []string
	for i := range policies.Items {
		for _, l := range policies.Items[i].Spec.Limits {
			if l.Fairness != nil && l.BudgetRef != nil && l.BudgetRef.Name == b.Name {
				warnings = append(warnings, fmt.Sprintf("spec.escrow.type: limit %s of RateLimitPolicy %s has fairness, and units in Redis cannot be split over tenants, so its pods would keep what they have: set it to Controller, or remove fairness there",
					l.Name, policies.Items[i].Name))
			}
		}
	}
	return warnings
}

// unkeyed warns of policies that draw from the budget and cannot count by its key, or by several rates.
func (v BudgetValidator) unkeyed(ctx context.Context, b *v1alpha1.FederatedBudget) []string {
	at := "spec.key"
	switch {
	case b.Spec.Key != nil:
	case len(b.Spec.AdditionalRates) > 0:
		at = "spec.additionalRates"
	default:
		return nil
	}
	var policies v1alpha1.RateLimitPolicyList
	if err := v.Cache.List(ctx, &policies, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return []string{fmt.Sprintf("%s: it is not known whether the policies that draw from the budget can count by it (%v): see their condition Accepted", at, err)}
	}
	budgets := resolve.NewBudgets([]v1alpha1.FederatedBudget{*b}, v.Cluster, v.IDs).In(b.Namespace)
	var warnings []string
	for i := range policies.Items {
		p := &policies.Items[i]
		draws := slices.ContainsFunc(p.Spec.Limits, func(l v1alpha1.Limit) bool { return l.BudgetRef != nil && l.BudgetRef.Name == b.Name })
		if !draws {
			continue
		}
		if _, faults := translate.Validate(p, budgets); len(faults) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: RateLimitPolicy %s cannot draw from the budget, so its pods would keep what they have: %v", at, p.Name, faults.ToAggregate()))
		}
	}
	return warnings
}

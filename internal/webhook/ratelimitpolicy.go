package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/translate"
)

// PolicyValidator tells the author of a RateLimitPolicy what is wrong with it and
// what is doubtful.
type PolicyValidator struct{}

var _ admission.Validator[*v1alpha1.RateLimitPolicy] = PolicyValidator{}

// ValidateCreate refuses a policy that cannot be enforced, naming every field.
func (PolicyValidator) ValidateCreate(_ context.Context, p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	warnings, faults := translate.Validate(p)
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

package webhook

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// longWindow is the length above which it hurts that a crash of the leading
// controller leaves a window unserved.
const longWindow = time.Minute

// PolicyValidator validates RateLimitPolicies.
type PolicyValidator struct {
	// Validate returns every fault of a policy.
	Validate func(*v1alpha1.RateLimitPolicy) field.ErrorList
}

var _ admission.Validator[*v1alpha1.RateLimitPolicy] = PolicyValidator{}

// ValidateCreate refuses a policy that has faults and warns of doubtful choices.
func (v PolicyValidator) ValidateCreate(_ context.Context, p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	if faults := v.Validate(p); len(faults) > 0 {
		kind := v1alpha1.GroupVersion.WithKind("RateLimitPolicy").GroupKind()
		return nil, apierrors.NewInvalid(kind, p.Name, faults)
	}
	return doubts(p), nil
}

// ValidateUpdate does the same for a changed spec. An object that was stored
// under older rules can still be labelled and deleted.
func (v PolicyValidator) ValidateUpdate(ctx context.Context, old, p *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(old.Spec, p.Spec) {
		return nil, nil
	}
	return v.ValidateCreate(ctx, p)
}

// ValidateDelete has nothing against a deletion.
func (v PolicyValidator) ValidateDelete(context.Context, *v1alpha1.RateLimitPolicy) (admission.Warnings, error) {
	return nil, nil
}

// doubts are about what works and may yet surprise.
func doubts(p *v1alpha1.RateLimitPolicy) admission.Warnings {
	if p.Spec.Store.Type != "" && p.Spec.Store.Type != v1alpha1.ControllerStore {
		return nil
	}
	var list admission.Warnings
	for i, limit := range p.Spec.Limits {
		for j, rate := range limit.Rates {
			window, err := time.ParseDuration(string(rate.Window))
			if err == nil && window > longWindow {
				list = append(list, fmt.Sprintf("spec.limits[%d].rates[%d].window: after a crash of the controller"+
					" nothing is admitted until this window of %s ends: use store type Redis", i, j, rate.Window))
			}
		}
	}
	return list
}

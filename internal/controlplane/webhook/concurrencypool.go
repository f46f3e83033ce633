package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// PoolValidator reports to the author of a ConcurrencyPool what is wrong with it and what is
// doubtful, other pools that select the same pods among it.
type PoolValidator struct {
	Pools client.Reader // of the cache, which may be behind
}

var _ admission.Validator[*v1alpha1.ConcurrencyPool] = PoolValidator{}

// ValidateCreate refuses a pool that cannot be enforced, naming every field.
func (v PoolValidator) ValidateCreate(ctx context.Context, p *v1alpha1.ConcurrencyPool) (admission.Warnings, error) {
	warnings, faults := translate.ValidatePool(p)
	if len(faults) > 0 {
		kind := v1alpha1.GroupVersion.WithKind("ConcurrencyPool").GroupKind()
		return warnings, apierrors.NewInvalid(kind, p.Name, faults)
	}
	return append(warnings, v.rivals(ctx, p)...), nil
}

// ValidateUpdate does the same for a changed spec. A pool that was stored under older
// rules can still be labelled and deleted.
func (v PoolValidator) ValidateUpdate(ctx context.Context, old, p *v1alpha1.ConcurrencyPool) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(old.Spec, p.Spec) {
		return nil, nil
	}
	return v.ValidateCreate(ctx, p)
}

// ValidateDelete has nothing against a deletion.
func (PoolValidator) ValidateDelete(context.Context, *v1alpha1.ConcurrencyPool) (admission.Warnings, error) {
	return nil, nil
}

// rivals warns of pools that select the same pods. That is not a fault: which of them
// applies is defined, and a pool that takes over from another is made beside it.
func (v PoolValidator) rivals(ctx context.Context, p *v1alpha1.ConcurrencyPool) []string {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var all v1alpha1.ConcurrencyPoolList
	if err := v.Pools.List(ctx, &all, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return []string{fmt.Sprintf("spec.podSelector: it is not known whether another ConcurrencyPool selects the same pods (%v): see the condition Accepted", err)}
	}
	var warnings []string
	for _, rival := range resolve.Rivals(all.Items, p) {
		warnings = append(warnings, rivalry(p, rival))
	}
	return warnings
}

func rivalry(p *v1alpha1.ConcurrencyPool, rival resolve.Rival) string {
	both := "pods without labels"
	if len(rival.Both) > 0 {
		both = "pods labelled " + labels.FormatLabels(rival.Both)
	}
	if resolve.Precedence(rival.Pool, p) < 0 {
		return fmt.Sprintf("spec.podSelector: ConcurrencyPool %s selects %s, too; it is older and applies to them, and this one does not: let only one of the two select them", rival.Pool.Name, both)
	}
	return fmt.Sprintf("spec.podSelector: ConcurrencyPool %s selects %s, too; this one is older and applies to them: let only one of the two select them", rival.Pool.Name, both)
}

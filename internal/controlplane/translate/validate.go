package translate

import (
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// maxValue is the most bytes of a value that requests are compared with. The
// schema counts characters, which may take several.
const maxValue = 1024

// Validate returns what is wrong with p, so that it cannot be enforced, and what
// is doubtful, so that it may not do what was meant. Every message names the
// field and the cure. Warnings are only given for a policy without errors. A budget
// that does not count is not a fault of p, which may well be applied before it: it is
// warned of, and Policy fails until it does.
func Validate(p *v1alpha1.RateLimitPolicy, budgets Budgets) (warnings []string, errs field.ErrorList) {
	translated, unmet, errs := translate(p, budgets)
	if len(errs) > 0 {
		return nil, errs
	}
	for _, reference := range unmet {
		warnings = append(warnings, warn(field.NewPath(reference.Field), "%s", reference.Detail))
	}
	return append(warnings, doubts(p, translated)...), nil
}

// ValidatePool does the same for a pool.
func ValidatePool(p *v1alpha1.ConcurrencyPool) (warnings []string, errs field.ErrorList) {
	translated, errs := translatePool(p)
	if len(errs) > 0 {
		return nil, errs
	}
	return poolDoubts(translated), nil
}

// ValidateBudget does the same for a budget in the cluster of that name. It warns of a
// cluster that is not one of the members, since the flag that names it may follow.
func ValidateBudget(b *v1alpha1.FederatedBudget, self string) (warnings []string, errs field.ErrorList) {
	translated, errs := translateBudget(b)
	if len(errs) > 0 {
		return nil, errs
	}
	return budgetDoubts(b, translated, self), nil
}

var selectorOperators = []metav1.LabelSelectorOperator{
	metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
}

func validateSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	strict := metav1validation.LabelSelectorValidationOptions{}
	matchLabels := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	var errs field.ErrorList
	for i, requirement := range s.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		if !slices.Contains(selectorOperators, requirement.Operator) {
			errs = append(errs, field.NotSupported(at.Child("operator"), requirement.Operator, selectorOperators))
			continue
		}
		errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(requirement, strict, at)...)
	}
	return append(errs, metav1validation.ValidateLabelSelector(matchLabels, strict, path)...)
}

func validateValue(path *field.Path, value string, expression bool) *field.Error {
	if len(value) > maxValue {
		return field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("takes %d bytes: shorten it to at most %d", len(value), maxValue))
	}
	if !expression {
		return nil
	}
	if _, err := regexp.Compile(value); err != nil {
		return field.Invalid(path, value, fmt.Sprintf("not an RE2 expression (%v): correct it, or set type to Exact", err))
	}
	return nil
}

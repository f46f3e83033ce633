package plugin

import (
	"errors"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// annotationOf returns the value of v1alpha1.ResetAnnotation.
func annotationOf(limit, value, request string) string {
	if value != "" {
		limit += "=" + value
	}
	return limit + "@" + request
}

// resetOf returns what the annotation would set back, as the controller reads it.
func resetOf(p *v1alpha1.RateLimitPolicy, limit, value, request string) (translate.Reset, error) {
	asked := p.DeepCopy()
	asked.Annotations = map[string]string{v1alpha1.ResetAnnotation: annotationOf(limit, value, request)}
	// Where a budget cannot be read the translation has the limits all the same.
	translated, _ := translate.Policy(asked, noBudgets)
	return translate.ResetOf(asked, &translated)
}

// noBudgets is for what does not depend on them.
func noBudgets(string) (policy.FederatedBudget, error) {
	return policy.FederatedBudget{}, errors.New("budgets are not read")
}

// knownValues returns the values of a limit's key that the policy and the user name, by hash. The
// key of a limit that draws from a budget is the budget's.
func knownValues(p *v1alpha1.RateLimitPolicy, limit string, values []string, budgets translate.Budgets) map[string]string {
	known := map[string]string{store.HashValue(policy.MissingValue()): "(missing)"}
	// Where a budget cannot be read the translation has the limits all the same.
	translated, _ := translate.Policy(p, budgets)
	for i := range translated.Limits {
		l := &translated.Limits[i]
		if l.Name != limit || l.Key == nil {
			continue
		}
		for _, value := range values {
			// A value that the key of this limit cannot have is one of another.
			if hash, err := translate.HashOfValue(l, value); err == nil {
				known[hash] = value
			}
		}
		for value := range l.Overridden(&translated) {
			known[store.HashValue(value)] = value
		}
	}
	return known
}

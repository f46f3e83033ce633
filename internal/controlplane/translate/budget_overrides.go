package translate

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// budgetOverrides sets the values of the key that have limits of their own: as requests have
// them for the limits that draw from the budget, and by hash for its coordinator. Their limits of the
// further rates are those of all values.
func (t *translator) budgetOverrides(path *field.Path, s *v1alpha1.FederatedBudgetSpec, further []limiter.Rate, out *policy.FederatedBudget) {
	seen := make(map[string]*field.Path)
	for i, o := range s.Key.Overrides {
		override := policy.Override{
			Values: t.overridden(path.Index(i).Child("values"), out.Key, o.Values, seen),
			Rates:  append([]limiter.Rate{{Limit: o.Limit, Window: out.Params.Window}}, further...),
		}
		out.Overrides = append(out.Overrides, override)
		for _, v := range override.Values {
			out.Params.Overrides = append(out.Params.Overrides, ledger.Override{
				Hash: v.Hash(), Limit: o.Limit, Block: block(s, o.Limit),
			})
		}
	}
	slices.SortFunc(out.Params.Overrides, func(a, b ledger.Override) int { return cmp.Compare(a.Hash, b.Hash) })
}

package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Budget returns how the cluster of that name takes part in b. The object is one that
// the API server defaulted. The error names every field that is wrong, with its cure,
// and the flag --cluster-name when the cluster is not one of the members.
func Budget(b *v1alpha1.FederatedBudget, self string) (policy.FederatedBudget, error) {
	translated, errs := translateBudget(b)
	translated.Member = self
	if !slices.ContainsFunc(translated.Params.Members, func(m ledger.Member) bool { return m.Name == self }) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "members"), field.OmitValueType{}, stranger(b, self)))
	}
	return translated, errs.ToAggregate()
}

// stranger says that the cluster is not one of the members, and the cure.
func stranger(b *v1alpha1.FederatedBudget, self string) string {
	var names []string
	for _, m := range b.Spec.Members {
		names = append(names, m.Name)
	}
	return fmt.Sprintf("this cluster is %q by the flag --cluster-name of its controller, and none of the members (%s): add it to them, or correct the flag",
		self, strings.Join(names, ", "))
}

// translateBudget returns the translation of b but for the member that this cluster is,
// and all that is wrong with it. Where it returns errors the translation is of no use.
func translateBudget(b *v1alpha1.FederatedBudget) (policy.FederatedBudget, field.ErrorList) {
	spec, t := field.NewPath("spec"), translator{trusts: true, lent: true}
	translated := policy.FederatedBudget{
		ID:                  b.Spec.ID,
		Namespace:           b.Namespace,
		Name:                b.Name,
		Generation:          Generation(b),
		Hub:                 hub(b),
		Coordinator:         coordinator(b),
		Escrow:              escrow(b),
		OnCoordinatorOutage: policy.BudgetOutage(b.Spec.OnCoordinatorOutage.Action),
		Batch:               policy.Batch{Type: policy.SizeType(b.Spec.Batch.Type), Size: b.Spec.Batch.Size},
		Params: ledger.Params{
			Limit:    b.Spec.Rate.Limit,
			Window:   t.micros(spec.Child("rate", "window"), string(b.Spec.Rate.Window)),
			Members:  members(&b.Spec),
			Strategy: strategies[b.Spec.Allocation],
			Slices:   slicing(&b.Spec),
			Block:    block(&b.Spec, b.Spec.Rate.Limit),
		},
	}
	further := t.further(spec.Child("additionalRates"), b)
	for _, r := range further {
		translated.Params.Others = append(translated.Params.Others, r.Window)
	}
	if k := b.Spec.Key; k != nil {
		translated.Key = t.key(spec.Child("key"), &v1alpha1.Key{Parts: k.Parts, OnMissing: k.OnMissing, MaxKeys: k.MaxKeys})
		translated.Params.Keys = int64(k.MaxKeys)
		t.budgetOverrides(spec.Child("key", "overrides"), &b.Spec, further, &translated)
	}
	if len(t.errs) > 0 {
		return translated, t.errs
	}
	if err := translated.Params.Validate(); err != nil {
		t.invalid(spec, field.OmitValueType{}, err.Error())
	}
	for _, r := range further {
		translated.Additional = append(translated.Additional, additional(&b.Spec, translated.Params, r))
		if err := translated.Additional[len(translated.Additional)-1].Validate(); err != nil {
			t.invalid(spec.Child("additionalRates"), field.OmitValueType{}, err.Error())
		}
	}
	return translated, t.errs
}

// further returns the further rates of a budget, from the shortest window to the longest, so that
// their order in the object does not matter.
func (t *translator) further(path *field.Path, b *v1alpha1.FederatedBudget) []limiter.Rate {
	var out []limiter.Rate
	for i, r := range b.Spec.AdditionalRates {
		out = append(out, limiter.Rate{Limit: r.Limit, Window: t.micros(path.Index(i).Child("window"), string(r.Window))})
	}
	slices.SortFunc(out, func(a, b limiter.Rate) int { return cmp.Compare(a.Window, b.Window) })
	if len(out) > 0 && slicing(&b.Spec) {
		t.invalid(path, field.OmitValueType{}, "members go on with a part of one rate only: set onCoordinatorOutage.action to FailClosed or RegionalOnly, or remove additionalRates")
	}
	return out
}

// additional returns what a further rate is divided by: as the first, but in its own windows. A value
// with an override has a counter of its own there, too.
func additional(s *v1alpha1.FederatedBudgetSpec, first ledger.Params, r limiter.Rate) ledger.Params {
	out := first
	out.Limit, out.Window, out.Block, out.Others, out.Overrides = r.Limit, r.Window, block(s, r.Limit), nil, nil
	for _, o := range first.Overrides {
		out.Overrides = append(out.Overrides, ledger.Override{Hash: o.Hash, Limit: out.Limit, Block: out.Block})
	}
	return out
}

var strategies = map[v1alpha1.BudgetAllocation]ledger.Strategy{
	v1alpha1.FairShareAllocation: ledger.FairShare,
	v1alpha1.FirstComeAllocation: ledger.FirstCome,
	v1alpha1.StaticAllocation:    ledger.Static,
}

// slicing reports whether what members keep is theirs without asking.
func slicing(s *v1alpha1.FederatedBudgetSpec) bool {
	return s.OnCoordinatorOutage.Action == v1alpha1.BudgetNominalAction
}

func members(s *v1alpha1.FederatedBudgetSpec) []ledger.Member {
	var out []ledger.Member
	for i := range s.Members {
		m := &s.Members[i]
		lent := m.Nominal
		if slicing(s) {
			lent = 0
		}
		out = append(out, ledger.Member{
			Name:      m.Name,
			Weight:    int64(m.Weight),
			Nominal:   m.Nominal,
			Kept:      m.Nominal - or(m.LendingLimit, lent),
			Borrowing: or(m.BorrowingLimit, unbounded),
		})
	}
	slices.SortFunc(out, func(a, b ledger.Member) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// unbounded is what a member borrows whose borrowing nothing bounds.
const unbounded = int64(-1)

// block returns how many units of a limit the hub sets aside at once; 0 where the ledger itself
// is durable, or kept by another cluster.
func block(s *v1alpha1.FederatedBudgetSpec, limit int64) int64 {
	if s.Hub != nil || s.Coordinator.Type != v1alpha1.KubernetesCoordinator {
		return 0
	}
	return max(1, scale(limit, int64(or(s.Coordinator.BlockPercent, v1alpha1.DefaultBlockPercent)), 100))
}

func hub(b *v1alpha1.FederatedBudget) *policy.Hub {
	h := b.Spec.Hub
	if h == nil {
		return nil
	}
	return &policy.Hub{Endpoint: string(h.Endpoint), Secret: secret(b.Namespace, &h.SecretRef)}
}

// coordinator returns the server that keeps the budget, or this cluster's leading
// controller.
func coordinator(b *v1alpha1.FederatedBudget) policy.Store {
	c := b.Spec.Coordinator
	kind := v1alpha1.StoreType(c.Type)
	if c.Type == v1alpha1.KubernetesCoordinator {
		kind = v1alpha1.ControllerStore
	}
	return store(b.Namespace, v1alpha1.Store{Type: kind, Redis: c.Redis, Postgres: c.Postgres})
}

func escrow(b *v1alpha1.FederatedBudget) policy.Store {
	e := b.Spec.Escrow
	return store(b.Namespace, v1alpha1.Store{Type: v1alpha1.StoreType(e.Type), Redis: e.Redis})
}

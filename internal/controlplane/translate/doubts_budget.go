package translate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// blocksPerSecond is how often a hub may write to its API server for one budget.
const blocksPerSecond = 10

// budgetDoubts returns what works and may yet not be what was meant by the cluster of
// that name.
func budgetDoubts(b *v1alpha1.FederatedBudget, translated policy.FederatedBudget, self string) []string {
	d := budgetDoubt{path: field.NewPath("spec"), object: b, budget: &translated, self: self}
	return slices.Concat(d.stranger(), d.window(), d.block(), d.batch(), d.rates(), d.unequal(), d.members(), d.slice())
}

type budgetDoubt struct {
	path   *field.Path
	object *v1alpha1.FederatedBudget
	budget *policy.FederatedBudget
	self   string
}

// member returns what this cluster is in the budget; nil when it is not a member.
func (d budgetDoubt) member() *ledger.Member {
	for i := range d.budget.Params.Members {
		if m := &d.budget.Params.Members[i]; m.Name == d.self {
			return m
		}
	}
	return nil
}

func (d budgetDoubt) stranger() []string {
	if d.member() != nil {
		return nil
	}
	return []string{warn(d.path.Child("members"), "%s", stranger(d.object, d.self))}
}

// A writtenRate is one of a budget, and where the object has it.
type writtenRate struct {
	limiter.Rate
	path   *field.Path
	window v1alpha1.Duration
}

// written returns the rates of the budget, in the order of the object.
func (d budgetDoubt) written() []writtenRate {
	of := func(path *field.Path, r v1alpha1.BudgetRate) writtenRate {
		window, _ := micros(string(r.Window)) // which was translated
		return writtenRate{Rate: limiter.Rate{Limit: r.Limit, Window: window}, path: path, window: r.Window}
	}
	all := []writtenRate{of(d.path.Child("rate"), d.object.Spec.Rate)}
	for i, r := range d.object.Spec.AdditionalRates {
		all = append(all, of(d.path.Child("additionalRates").Index(i), r))
	}
	return all
}

// window warns of one that a round trip between regions takes a good part of.
func (d budgetDoubt) window() (warnings []string) {
	for _, r := range d.written() {
		if d.budget.Hub != nil && r.Window < limiter.Second {
			warnings = append(warnings, warn(r.path.Child("window"),
				"a window of %s may be over by the time that a hub in another region has answered, and what it granted with it: use windows of 1s or more", r.window))
		}
	}
	return warnings
}

// rates warns of one that another keeps from ever refusing.
func (d budgetDoubt) rates() (warnings []string) {
	all := d.written()
	for i, r := range all {
		for j, other := range all {
			if i != j && neverBinds(policy.FixedWindow, r.Rate, other.Rate) {
				warnings = append(warnings, warn(r.path,
					"%d per %s is never reached, because %s alone keeps below it: lower its limit, or use one rate", r.Limit, r.window, other.path))
				break
			}
		}
	}
	return warnings
}

// block warns of a hub that would ask its API server all the time.
func (d budgetDoubt) block() []string {
	var percent int64
	for _, r := range d.budget.Rates() {
		p := &r.Params
		if p.Block == 0 || p.Keys > 0 { // what is set aside of values is written at a pace of its own
			return nil
		}
		allowed := max(1, blocksPerSecond*int64(p.Window)/int64(limiter.Second))
		if blocks := (p.Limit + p.Block - 1) / p.Block; blocks > allowed {
			percent = max(percent, (100+allowed-1)/allowed)
		}
	}
	if percent == 0 {
		return nil
	}
	return []string{warn(d.path.Child("coordinator", "blockPercent"),
		"the hub may write to its API server more than %d times a second for it: raise it to %d, or use a longer window", blocksPerSecond, percent)}
}

// batch warns when one member can empty a window that others share.
func (d budgetDoubt) batch() []string {
	b, least := d.budget.Batch, d.budget.Params.Limit
	for _, p := range d.budget.Additional {
		least = min(least, p.Limit)
	}
	if b.Type != policy.Fixed || b.Size < least || len(d.budget.Params.Members) == 1 {
		return nil
	}
	return []string{warn(d.path.Child("batch", "size"),
		"one lease can hold the whole limit (%d), so that other members refuse: lower it, for example to %d", least, max(1, least/10))}
}

// unequal warns of weights and nominals that the allocation does not go by.
func (d budgetDoubt) unequal() []string {
	if d.budget.Params.Strategy != ledger.FirstCome {
		return nil
	}
	var warnings []string
	for i, m := range d.object.Spec.Members {
		path := d.path.Child("members").Index(i)
		if m.Weight != 1 {
			warnings = append(warnings, warn(path.Child("weight"), "allocation FirstCome does not weigh, so this has no effect: remove it, or set allocation to FairShare"))
		}
		if m.Nominal > 0 && m.BorrowingLimit == nil && d.kept(m.Name) == 0 {
			warnings = append(warnings, warn(path.Child("nominal"),
				"allocation FirstCome keeps only what is not lent, and all of it is, so this has no effect: set lendingLimit below it, or set allocation to FairShare"))
		}
	}
	return warnings
}

// kept returns what a member never lends.
func (d budgetDoubt) kept(name string) int64 {
	for _, m := range d.budget.Params.Members {
		if m.Name == name {
			return m.Kept
		}
	}
	return 0
}

// members warns of settings of single members.
func (d budgetDoubt) members() []string {
	var warnings []string
	for i, m := range d.object.Spec.Members {
		path := d.path.Child("members").Index(i)
		if m.Nominal == 0 && m.BorrowingLimit != nil && *m.BorrowingLimit == 0 {
			warnings = append(warnings, warn(path.Child("borrowingLimit"), "the member has no nominal and may borrow nothing, so it refuses every request: raise one of the two"))
		}
		if d.budget.Params.Strategy == ledger.Static && m.LendingLimit != nil && !d.budget.Params.Slices {
			warnings = append(warnings, warn(path.Child("lendingLimit"), "allocation Static lends nothing anyway, so this has no effect: remove it, or set allocation to FairShare"))
		}
	}
	return warnings
}

// slice warns of an outage that this cluster cannot go on in.
func (d budgetDoubt) slice() []string {
	m := d.member()
	if m == nil || !d.budget.Params.Slices || m.Kept > 0 {
		return nil
	}
	return []string{warn(d.path.Child("onCoordinatorOutage", "action"),
		"this cluster keeps nothing of its nominal, so it refuses while the coordinator is away: set its nominal, with a lendingLimit below it or none, or set action to FailClosed")}
}

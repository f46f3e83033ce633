package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// drawn is a budget that limits of the policy draw from.
type drawn struct {
	name      string
	rates     []v1alpha1.BudgetRate
	guarantee v1alpha1.Guarantee
	err       error // why the guarantee cannot be known
}

// policiesDrawing returns the policies that refer to a budget.
func (r *RateLimitPolicyReconciler) policiesDrawing(ctx context.Context, budget client.Object) []reconcile.Request {
	var list v1alpha1.RateLimitPolicyList
	if err := r.Client.List(ctx, &list, client.InNamespace(budget.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the policies that draw from a budget", "budget", client.ObjectKeyFromObject(budget))
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if slices.Contains(budgetsOf(&list.Items[i]), budget.GetName()) {
			requests = append(requests, request(&list.Items[i]))
		}
	}
	return requests
}

// budgetsOf returns the names of the budgets that limits of the policy draw from, each
// once, ordered.
func budgetsOf(p *v1alpha1.RateLimitPolicy) []string {
	var names []string
	for _, l := range p.Spec.Limits {
		if l.BudgetRef != nil {
			names = append(names, l.BudgetRef.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// budgetMatters lets those updates of a budget pass that change what it is, or whether
// it counts in this cluster.
func budgetMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.FederatedBudget)
		after, ok2 := e.ObjectNew.(*v1alpha1.FederatedBudget)
		return !ok || !ok2 || before.Generation != after.Generation || counts(before) != counts(after)
	}}
}

func counts(b *v1alpha1.FederatedBudget) bool {
	return meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.AcceptedCondition)
}

// gatherBudgets returns what the policy may draw from, and notes what it does draw from.
func (r *RateLimitPolicyReconciler) gatherBudgets(ctx context.Context, s *scope) (translate.Budgets, error) {
	names := budgetsOf(s.policy)
	if len(names) == 0 {
		return nil, nil
	}
	var all v1alpha1.FederatedBudgetList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the budgets: %w", err)
	}
	resolved := resolve.NewBudgets(all.Items, r.Cluster, r.IDs)
	for i := range all.Items {
		object := &all.Items[i]
		if object.Namespace != s.policy.Namespace || !slices.Contains(names, object.Name) {
			continue
		}
		d := drawn{name: object.Name, rates: ratesOf(&object.Spec)}
		if found := resolved.Named(client.ObjectKeyFromObject(object)); found.Err == nil {
			d.guarantee, d.err = r.firmnessOf(ctx, &found.Budget)
		}
		s.budgets = append(s.budgets, d)
	}
	slices.SortFunc(s.budgets, func(a, b drawn) int { return cmp.Compare(a.name, b.name) })
	return resolved.In(s.policy.Namespace), nil
}

// firmnessOf grades what a budget rests on. Where it is kept in the API server of a hub
// that is known without asking.
func (r *RateLimitPolicyReconciler) firmnessOf(ctx context.Context, b *policy.FederatedBudget) (v1alpha1.Guarantee, error) {
	if b.Hub != nil || b.Coordinator.Type == policy.ControllerStore {
		return v1alpha1.Guarantee{
			Grade:  v1alpha1.HardGuarantee,
			Reason: "its hub grants only what it has set aside in its API server before",
		}, nil
	}
	secret, _, err := r.Secrets.Data(ctx, b.Coordinator)
	if err != nil {
		return v1alpha1.Guarantee{}, err
	}
	facts, err := r.Stores.Probe(ctx, b.Coordinator, secret)
	return described(facts.Volatile.Guarantee), err
}

// budget returns what a limit draws from, and false for a limit with rates of its own,
// and while its budget is not there.
func (s *scope) budget(l *v1alpha1.Limit) (drawn, bool) {
	if l.BudgetRef == nil {
		return drawn{}, false
	}
	i := slices.IndexFunc(s.budgets, func(d drawn) bool { return d.name == l.BudgetRef.Name })
	if i < 0 {
		return drawn{}, false
	}
	return s.budgets[i], true
}

// rates returns those of a limit in short; of one that draws from a budget what all
// clusters share.
func (s *scope) rates(l *v1alpha1.Limit) []string {
	if l.BudgetRef != nil {
		of, ok := s.budget(l)
		if !ok {
			return nil
		}
		var short []string
		for _, r := range of.rates {
			short = append(short, fmt.Sprintf("%d/%s federated", r.Limit, r.Window))
		}
		return short
	}
	var short []string
	for _, r := range l.Rates {
		short = append(short, rateInShort(r))
	}
	return short
}

// weakened returns the grade with those of the budgets: the weakest counts. It is absent
// while one of them cannot be known.
func (s *scope) weakened(g *v1alpha1.Guarantee) *v1alpha1.Guarantee {
	for _, d := range s.budgets {
		if d.err != nil {
			return nil
		}
		if strength[d.guarantee.Grade] < strength[g.Grade] {
			g.Grade = d.guarantee.Grade
		}
		g.Reason += fmt.Sprintf("; of FederatedBudget %s: %s", d.name, d.guarantee.Reason)
	}
	return g
}

// elsewhere says where the figures of all clusters are; this cluster's are a part of
// them.
func (s *scope) elsewhere() string {
	return s.ofBudgets("; what all clusters together admitted is in the status of FederatedBudget ")
}

// leased says what the counters in the controller are filled from.
func (s *scope) leased() string {
	return s.ofBudgets(", which leases what they hand on from FederatedBudget ")
}

// ofBudgets names the budgets behind what is said; nothing is without any.
func (s *scope) ofBudgets(said string) string {
	if len(s.budgets) == 0 {
		return ""
	}
	names := make([]string, len(s.budgets))
	for i, d := range s.budgets {
		names[i] = d.name
	}
	return said + nameSome(names)
}

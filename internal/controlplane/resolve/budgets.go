package resolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Budget is what became of one FederatedBudget of this cluster.
type Budget struct {
	Object types.NamespacedName
	ID     string
	Budget policy.FederatedBudget // of no use with an error; without the versions of its credentials
	// Err says why it does not count, and the cure: *IDError when its namespace may not have
	// the id, *ConflictError when an older object has it, else what cannot be translated.
	Err error
}

// Budgets are all FederatedBudgets of a cluster, resolved. It is a value that nobody
// changes, and safe for concurrent use.
type Budgets struct {
	self   string
	ids    IDs
	all    []Budget // in the order of precedence
	byName map[types.NamespacedName]int
	byID   map[string]int // the one that has the id

	credentialed map[string]bool                   // members that have a Secret here
	left         map[types.NamespacedName][]string // members that have none, for want of room
}

// How many members of the budgets that this cluster keeps have a Secret in the controller's
// namespace: those who may write FederatedBudgets have no say in that one.
const (
	MaxNamespaceMembers = 64   // that the budgets of a namespace name, each once
	MaxMembers          = 1024 // in all
)

// ReadBudgets resolves the FederatedBudgets that the reader lists for the cluster of
// that name, which is what --cluster-name says, under the rules of --federation-ids.
func ReadBudgets(ctx context.Context, from client.Reader, self string, ids IDs) (*Budgets, error) {
	var all v1alpha1.FederatedBudgetList
	if err := from.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the budgets: %w", err)
	}
	return NewBudgets(all.Items, self, ids), nil
}

// NewBudgets resolves all FederatedBudgets of the cluster of that name. If several that may
// have one id use it, the oldest has it, also when it cannot be translated: two that count at
// once would be two limits. If two are of the same second, the one has it whose namespace,
// then name, comes first. One that may not have its id takes it from no other.
func NewBudgets(all []v1alpha1.FederatedBudget, self string, ids IDs) *Budgets {
	b := &Budgets{self: self, ids: ids, byName: make(map[types.NamespacedName]int), byID: make(map[string]int)}
	ordered := slices.Clone(all)
	slices.SortFunc(ordered, func(a, b v1alpha1.FederatedBudget) int { return precedence(&a, &b) })
	for i := range ordered {
		resolved := b.resolve(&ordered[i])
		_, taken := b.byID[resolved.ID]
		if _, denied := errors.AsType[*IDError](resolved.Err); !taken && !denied {
			b.byID[resolved.ID] = i
		}
		b.byName[resolved.Object] = i
		b.all = append(b.all, resolved)
	}
	b.admit()
	return b
}

// admit finds which members of the budgets that this cluster keeps have Secrets. Older
// budgets come first, so what others write later takes nothing from them.
func (b *Budgets) admit() {
	b.credentialed, b.left = map[string]bool{}, map[types.NamespacedName][]string{}
	named := map[string]map[string]bool{} // by namespace
	for i := range b.all {
		of := &b.all[i]
		if of.Err != nil || of.Budget.Hub != nil || of.Budget.Coordinator.Type != policy.ControllerStore {
			continue
		}
		in := named[of.Object.Namespace]
		if in == nil {
			in = map[string]bool{}
			named[of.Object.Namespace] = in
		}
		for _, name := range of.Budget.Params.Names() {
			switch {
			case name == b.self || in[name]:
			case len(in) < MaxNamespaceMembers && (b.credentialed[name] || len(b.credentialed) < MaxMembers):
				in[name], b.credentialed[name] = true, true
			default:
				b.left[of.Object] = append(b.left[of.Object], name)
			}
		}
	}
}

// Credentialed returns the members of budgets that this cluster keeps that have a Secret
// here, each once, ordered; at most MaxMembers.
func (b *Budgets) Credentialed() []string { return slices.Sorted(maps.Keys(b.credentialed)) }

// Without returns the members of an object's budget that have none, because its namespace
// or the cluster names too many.
func (b *Budgets) Without(object types.NamespacedName) []string { return b.left[object] }

// resolve resolves an object. Those that were resolved before take precedence over it.
func (b *Budgets) resolve(object *v1alpha1.FederatedBudget) Budget {
	out := Budget{Object: client.ObjectKeyFromObject(object), ID: object.Spec.ID}
	if out.Err = b.ids.Permit(out.Object.Namespace, out.ID); out.Err != nil {
		return out
	}
	if older, taken := b.byID[out.ID]; taken {
		out.Err = &ConflictError{ID: out.ID, Older: b.all[older].Object}
		return out
	}
	out.Budget, out.Err = translate.Budget(object, b.self)
	return out
}

// All returns what became of every object, ordered by namespace and name.
func (b *Budgets) All() []Budget {
	return slices.SortedFunc(slices.Values(b.all), func(x, y Budget) int { return compareNames(x.Object, y.Object) })
}

// Counting returns the budgets that this cluster takes part in, one for each rate and id, ordered
// by id.
func (b *Budgets) Counting() []policy.FederatedBudget {
	var counting []policy.FederatedBudget
	for i := range b.all {
		if b.all[i].Err == nil {
			counting = append(counting, b.all[i].Budget.Rates()...)
		}
	}
	slices.SortFunc(counting, func(x, y policy.FederatedBudget) int { return cmp.Compare(x.ID, y.ID) })
	return counting
}

// Named returns what became of one object. There may be none: *NoBudgetError.
func (b *Budgets) Named(object types.NamespacedName) Budget {
	if i, ok := b.byName[object]; ok {
		return b.all[i]
	}
	return Budget{Object: object, Err: &NoBudgetError{Object: object}}
}

// In returns the budgets that policies of the namespace may draw from.
func (b *Budgets) In(namespace string) translate.Budgets {
	return func(name string) (policy.FederatedBudget, error) {
		found := b.Named(types.NamespacedName{Namespace: namespace, Name: name})
		if _, missing := errors.AsType[*NoBudgetError](found.Err); missing || found.Err == nil {
			return found.Budget, found.Err
		}
		return policy.FederatedBudget{}, fmt.Errorf("FederatedBudget %s does not count: %w", found.Object, found.Err)
	}
}

// NoBudgetError says that there is no FederatedBudget of that name.
type NoBudgetError struct {
	Object types.NamespacedName
}

// Error names the object, and the cure.
func (e *NoBudgetError) Error() string {
	return fmt.Sprintf("there is no FederatedBudget %s: create it, or name another in budgetRef", e.Object)
}

// ConflictError says that an older FederatedBudget has the same id.
type ConflictError struct {
	ID    string
	Older types.NamespacedName
}

// Error names the older object, and the cure.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("FederatedBudget %s has the id %s, too; it is older and counts: delete one of the two", e.Older, e.ID)
}

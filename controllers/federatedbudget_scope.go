package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/policy"
)

// budgetScope is all that one reconciliation of a budget knows. Everything that is said
// about the budget is a function of it.
type budgetScope struct {
	budget      *v1alpha1.FederatedBudget
	cluster     string                 // as the flag --cluster-name calls it
	invalid     error                  // why the cluster cannot take part; nil when it can
	doubts      []string               // why the budget may not do what was meant
	enforced    policy.FederatedBudget // the zero value unless it is accepted
	denied      *resolve.IDError       // its namespace may not have its id; nil when it may
	conflict    *resolve.ConflictError // with an older budget; nil for none
	observation budget.Observation
	now         time.Time
}

// member reports whether the budget lists this cluster.
func (s *budgetScope) member() bool {
	return slices.ContainsFunc(s.budget.Spec.Members, func(m v1alpha1.BudgetMember) bool { return m.Name == s.cluster })
}

// accepted reports whether the cluster takes part by this object.
func (s *budgetScope) accepted() bool {
	return s.invalid == nil && s.denied == nil && s.conflict == nil && s.member()
}

// stranger says that the cluster is none of the members, and the cure.
func (s *budgetScope) stranger() string {
	names := make([]string, len(s.budget.Spec.Members))
	for i, m := range s.budget.Spec.Members {
		names[i] = m.Name
	}
	slices.Sort(names)
	return fmt.Sprintf("this cluster is called %q by the flag --cluster-name of its controller, and none of the members is: add it to spec.members in every cluster, or start the controller with the name of a member (%s)",
		s.cluster, nameSome(names))
}

// crowded says that members get no credentials, and the cure.
func crowded(without []string) string {
	return fmt.Sprintf("there is no room for the Secrets of these members, so they cannot take part unless they have one already: %s; "+
		"the budgets that this cluster keeps may name %d members in a namespace and %d in all, those of older budgets first: take members off that are not needed",
		nameSome(without), resolve.MaxNamespaceMembers, resolve.MaxMembers)
}

// observe takes over what the runtime knows, unless the runtime works by another
// generation.
func (s *budgetScope) observe(o budget.Observation) {
	if o.Generation != translate.Generation(s.budget) {
		o = budget.Observation{}
	}
	s.observation = o
}

// running reports whether this controller draws from the budget as the object has it.
func (s *budgetScope) running() bool { return s.observation.Generation != 0 }

// connected reports whether the coordinator answers.
func (s *budgetScope) connected() bool { return s.running() && s.observation.Link.Problem == "" }

// learning reports whether the coordinator answers and grants nothing. Its answer about
// a window that is over says nothing about the next.
func (s *budgetScope) learning() bool { return s.connected() && s.observation.Learning.After(s.now) }

// ledger returns the budget as its coordinator shows it, nil while it does not.
func (s *budgetScope) ledger() *ledger.State {
	if !s.connected() {
		return nil
	}
	return s.observation.Ledger
}

// keeps reports whether this cluster is the hub.
func (s *budgetScope) keeps() bool {
	return s.enforced.Hub == nil && s.enforced.Coordinator.Type == policy.ControllerStore
}

// root returns the name that messages use for the coordinator of the budget.
func (s *budgetScope) root() string {
	switch {
	case s.keeps():
		return "this cluster"
	case s.enforced.Hub == nil:
		return fmt.Sprintf("%s at %s", s.enforced.Coordinator.Type, s.enforced.Coordinator.Address)
	case s.observation.Root.Member != "":
		return fmt.Sprintf("the hub %s at %s", s.observation.Root.Member, s.enforced.Hub.Endpoint)
	}
	return "the hub at " + s.enforced.Hub.Endpoint
}

// credentials returns the name that messages use for the Secret by which this cluster
// proves its identity.
func (s *budgetScope) credentials() string {
	secret := s.enforced.Coordinator.Secret
	if s.enforced.Hub != nil {
		secret = s.enforced.Hub.Secret
	}
	namespace, name, _ := strings.Cut(secret, "/")
	return fmt.Sprintf("Secret %s of namespace %s", name, namespace)
}

// rate is the budget's in words.
func (s *budgetScope) rate(limit int64) string {
	return fmt.Sprintf("%d per %s", limit, s.budget.Spec.Rate.Window)
}

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/policy"
)

// FederatedBudgetReconciler reports how this cluster takes part in the budgets that it
// shares with others. The runtime that draws from them follows the objects by itself;
// sidecars learn of a change by the policies that refer to a budget. It runs on the
// leader only.
type FederatedBudgetReconciler struct {
	Client  client.Client // reads from a cache with objectcache.Options
	Budgets Budgets
	Cluster string      // as the flag --cluster-name calls it
	IDs     resolve.IDs // that budgets may have
	Events  Events
	Clock   clock.PassiveClock

	memory memory
}

// SetupWithManager registers the reconciler for budgets, for others of the cluster with
// the same id, and for what is known of them.
func (r *FederatedBudgetReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		// No predicate: a status that somebody wiped is written again.
		For(&v1alpha1.FederatedBudget{}).
		Watches(&v1alpha1.FederatedBudget{}, handler.EnqueueRequestsFromMapFunc(r.namesakes), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(named(r.Budgets.BudgetsChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// namesakes returns the other budgets of the cluster with the id of a budget, which may
// count from now on, or no longer.
func (r *FederatedBudgetReconciler) namesakes(ctx context.Context, object client.Object) []reconcile.Request {
	of, ok := object.(*v1alpha1.FederatedBudget)
	if !ok {
		return nil
	}
	all, err := resolve.ReadBudgets(ctx, r.Client, r.Cluster, r.IDs)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot find which budgets have the id of another", "budget", client.ObjectKeyFromObject(of))
		return nil
	}
	var requests []reconcile.Request
	for _, b := range all.All() {
		if b.ID == of.Spec.ID && b.Object != client.ObjectKeyFromObject(of) {
			requests = append(requests, reconcile.Request{NamespacedName: b.Object})
		}
	}
	return requests
}

// Reconcile gathers what is known of one budget and reports it.
func (r *FederatedBudgetReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &budgetScope{budget: &v1alpha1.FederatedBudget{}, cluster: r.Cluster, now: r.Clock.Now()}
	if err := r.Client.Get(ctx, req.NamespacedName, s.budget); err != nil {
		if apierrors.IsNotFound(err) {
			// The runtime gives back what it has; grants end with their window.
			r.memory.drop(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the budget: %w", err)
	}
	if err := r.gather(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return r.report(ctx, s)
}

// gather fills the scope.
func (r *FederatedBudgetReconciler) gather(ctx context.Context, s *budgetScope) error {
	doubts, errs := translate.ValidateBudget(s.budget, r.Cluster)
	if s.doubts, s.invalid = doubts, errs.ToAggregate(); len(errs) > 0 {
		return nil
	}
	all, err := resolve.ReadBudgets(ctx, r.Client, r.Cluster, r.IDs)
	if err != nil {
		return err
	}
	found := all.Named(client.ObjectKeyFromObject(s.budget))
	if errors.As(found.Err, &s.denied) || errors.As(found.Err, &s.conflict) || !s.member() {
		return nil
	}
	if without := all.Without(found.Object); len(without) > 0 {
		s.doubts = append(s.doubts, crowded(without))
	}
	if s.enforced, err = translate.Budget(s.budget, r.Cluster); err != nil {
		return fmt.Errorf("translating a valid budget: %w", err)
	}
	s.observe(r.Budgets.ObserveBudget(s.budget.Namespace, s.budget.Name))
	return nil
}

// report writes the status if it changed and is due, and says when to look
// again: figures move without an event.
func (r *FederatedBudgetReconciler) report(ctx context.Context, s *budgetScope) (ctrl.Result, error) {
	name, next := client.ObjectKeyFromObject(s.budget), budgetStatusOf(s)
	wait, changed := writeDelay(budgetChangeOf(asSent(&r.memory, name, &s.budget.Status), &next), s.budget.UID, s.now.Sub(r.memory.written(name)))
	switch {
	case !changed:
		return ctrl.Result{RequeueAfter: s.again()}, nil
	case wait > 0:
		return ctrl.Result{RequeueAfter: sooner(wait, s.again())}, nil
	}
	before := s.budget.DeepCopy()
	s.budget.Status = next
	switch stale, err := writeStatus(ctx, r.Client, before.Status.ObservedGeneration == 0, before, s.budget); {
	case err != nil:
		return ctrl.Result{}, err
	case stale:
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	wrote(ctx, &r.memory, name, s.now, &next, &s.budget.Status)
	record(r.Events, s.budget, "FederatedBudget", before.Status.Conditions, s.budget.Status.Conditions)
	return ctrl.Result{RequeueAfter: s.again()}, nil
}

// again is when the budget's figures are due; zero when there are none to come.
func (s *budgetScope) again() time.Duration {
	if !s.accepted() {
		return 0
	}
	if s.learning() {
		return sooner(s.observation.Learning.Sub(s.now), figuresIntervalOf(s.budget.UID))
	}
	return figuresIntervalOf(s.budget.UID)
}

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

	further int          // which of the further rates it is of, from 1; 0: of the first
	first   *budgetScope // where it is of a further one
}

// member reports whether the budget lists this cluster.
func (s *budgetScope) member() bool {
	return slices.ContainsFunc(s.budget.Spec.Members, func(m v1alpha1.BudgetMember) bool { return m.Name == s.cluster })
}

// accepted reports whether the cluster takes part by this object.
func (s *budgetScope) accepted() bool {
	return s.invalid == nil && s.denied == nil && s.conflict == nil && s.member()
}

// stranger says that the cluster is not among the members, and the cure.
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

// keyed reports whether each value of a key has the limit.
func (s *budgetScope) keyed() bool { return s.enforced.Params.Keys > 0 }

// rate is the budget's in words.
func (s *budgetScope) rate(limit int64) string {
	if s.keyed() {
		return fmt.Sprintf("%d per %s of each value of the key", limit, s.written().Window)
	}
	return fmt.Sprintf("%d per %s", limit, s.written().Window)
}

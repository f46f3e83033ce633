package controllers

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// FederatedBudgetReconciler reports how this cluster takes part in the budgets that it
// shares with others. The runtime that draws from them follows the objects by itself;
// sidecars learn of a change by the policies that refer to a budget. It runs on the
// leader only.
type FederatedBudgetReconciler struct {
	Client  client.Client // reads from a cache with CacheOptions
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

// report writes the status if it changed and its pace allows, and says when to look
// again: figures move without an event.
func (r *FederatedBudgetReconciler) report(ctx context.Context, s *budgetScope) (ctrl.Result, error) {
	name, next := client.ObjectKeyFromObject(s.budget), budgetStatusOf(s)
	wait, changed := pace(budgetChangeOf(asSent(&r.memory, name, &s.budget.Status), &next), s.budget.UID, s.now.Sub(r.memory.written(name)))
	switch {
	case !changed:
		return ctrl.Result{RequeueAfter: s.again()}, nil
	case wait > 0:
		return ctrl.Result{RequeueAfter: sooner(wait, s.again())}, nil
	}
	before := s.budget.DeepCopy()
	s.budget.Status = next
	switch stale, err := writeStatus(ctx, r.Client, before, s.budget); {
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
		return sooner(s.observation.Learning.Sub(s.now), figuresEvery(s.budget.UID))
	}
	return figuresEvery(s.budget.UID)
}

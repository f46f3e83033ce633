package controllers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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

// ConcurrencyPoolReconciler publishes pools to the fleet and reports what the fleet
// acknowledged and measured. It runs on the leader only.
type ConcurrencyPoolReconciler struct {
	Client  client.Client   // reads from a cache with objectcache.Options
	Pods    cache.Informers // of that cache
	Fleet   PoolFleet
	Secrets Secrets
	Events  Events
	Clock   clock.PassiveClock

	memory memory
}

// SetupWithManager registers the reconciler for pools, for the pods that they select,
// for other pools that select the same, and for what the fleet reports.
func (r *ConcurrencyPoolReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		// No predicate: a status that somebody wiped is written again.
		For(&v1alpha1.ConcurrencyPool{}).
		Watches(&corev1.Pod{}, onPods(r.poolsOf), builder.WithPredicates(podMatters())).
		Watches(&v1alpha1.ConcurrencyPool{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(named(r.Fleet.PoolsChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// poolsOf returns the pools that select a pod.
func (r *ConcurrencyPoolReconciler) poolsOf(ctx context.Context, pod client.Object) []reconcile.Request {
	all, err := r.list(ctx, pod.GetNamespace())
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot find which pools select a pod", "pod", client.ObjectKeyFromObject(pod))
		return nil
	}
	var requests []reconcile.Request
	for _, p := range resolve.Pools(all, pod.GetNamespace(), pod.GetLabels()) {
		requests = append(requests, request(p))
	}
	return requests
}

// neighbours returns the other pools of a pool's namespace, for which a conflict may
// have come or gone.
func (r *ConcurrencyPoolReconciler) neighbours(ctx context.Context, pool client.Object) []reconcile.Request {
	all, err := r.list(ctx, pool.GetNamespace())
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot find which pools another one concerns", "pool", client.ObjectKeyFromObject(pool))
		return nil
	}
	var requests []reconcile.Request
	for i := range all {
		if all[i].Name != pool.GetName() {
			requests = append(requests, request(&all[i]))
		}
	}
	return requests
}

// list returns the pools of a namespace from the cache, which shares them: they are only
// read.
func (r *ConcurrencyPoolReconciler) list(ctx context.Context, namespace string) ([]v1alpha1.ConcurrencyPool, error) {
	var list v1alpha1.ConcurrencyPoolList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pools of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// Reconcile gathers, publishes and reports one pool.
func (r *ConcurrencyPoolReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &poolScope{pool: &v1alpha1.ConcurrencyPool{}, now: r.Clock.Now()}
	if err := r.Client.Get(ctx, req.NamespacedName, s.pool); err != nil {
		if apierrors.IsNotFound(err) {
			// Shares of a pool that is gone expire by themselves: nothing to finalize.
			r.Fleet.Refresh(req.Namespace)
			r.memory.drop(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the pool: %w", err)
	}
	if err := r.gather(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if r.memory.publish(req.NamespacedName, s.fingerprint()) {
		r.Fleet.Refresh(req.Namespace)
	}
	return r.report(ctx, s)
}

// gather fills the scope.
func (r *ConcurrencyPoolReconciler) gather(ctx context.Context, s *poolScope) error {
	doubts, errs := translate.ValidatePool(s.pool)
	if s.doubts, s.invalid = doubts, errs.ToAggregate(); len(errs) > 0 {
		return nil
	}
	var err error
	if s.enforced, err = translate.Pool(s.pool); err != nil {
		return fmt.Errorf("translating a valid pool: %w", err)
	}
	all, err := r.list(ctx, s.pool.Namespace)
	if err != nil {
		return err
	}
	selected, err := listPods(ctx, r.Pods, s.pool.Namespace, &s.pool.Spec.PodSelector)
	if err != nil {
		return err
	}
	s.divide(selected, all)
	s.observe(r.Fleet.ObservePool(s.pool.Namespace, s.pool.Name))
	_, s.credentials.version, s.credentials.err = r.Secrets.Data(ctx, s.enforced.Coordinator)
	return nil
}

// fingerprint changes when what the pool's pods have to enforce may have changed
// because of this pool.
func (s *poolScope) fingerprint() string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s/%d/%s", s.pool.UID, s.pool.Generation, s.credentials.version)
	return sumOf(sum, s.pods.enforcers)
}

// report writes the status if it changed and is due, and says when to look
// again: figures move without an event.
func (r *ConcurrencyPoolReconciler) report(ctx context.Context, s *poolScope) (ctrl.Result, error) {
	name, next := client.ObjectKeyFromObject(s.pool), poolStatusOf(s)
	have := asSent(&r.memory, name, &s.pool.Status)
	c, since := poolChangeOf(have, &next), s.now.Sub(r.memory.written(name))
	settling := r.memory.settling(name)
	if c == figuresNew && settling {
		c = redivided
	}
	wait, changed := writeDelay(c, s.pool.UID, since)
	switch {
	case !changed:
		settling = settling && since < settleInterval
		r.memory.settle(name, settling)
		return ctrl.Result{RequeueAfter: s.again(settling)}, nil
	case wait > 0:
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	settling = unsettles(have, &next) || settling && c != redivided
	before := s.pool.DeepCopy()
	s.pool.Status = next
	switch stale, err := writeStatus(ctx, r.Client, before.Status.ObservedGeneration == 0, before, s.pool); {
	case err != nil:
		return ctrl.Result{}, err
	case stale:
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	wrote(ctx, &r.memory, name, s.now, &next, &s.pool.Status)
	record(r.Events, s.pool, "ConcurrencyPool", before.Status.Conditions, s.pool.Status.Conditions)
	r.memory.settle(name, settling)
	return ctrl.Result{RequeueAfter: s.again(settling)}, nil
}

// again is when the pool's figures are due; zero when there are none to come.
func (s *poolScope) again(settling bool) time.Duration {
	if s.invalid != nil || len(s.pods.enforcers) == 0 && len(s.observation.Sessions) == 0 {
		return 0
	}
	if settling {
		return settleInterval
	}
	return figuresIntervalOf(s.pool.UID)
}

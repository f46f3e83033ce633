package controllers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
)

// workers is how many policies are reconciled at once. Each may wait for probes of
// two stores.
const workers = 4

// RateLimitPolicyReconciler publishes policies to the fleet and reports what the
// fleet acknowledged and measured. It runs on the leader only.
type RateLimitPolicyReconciler struct {
	Client  client.Client   // reads from a cache with objectcache.Options
	Pods    cache.Informers // of that cache
	Cluster string          // as the flag --cluster-name calls it
	IDs     resolve.IDs     // that budgets may have
	Fleet   Fleet
	Stores  StoreProbe
	Secrets Secrets
	Keys    Keys
	Events  Events
	Clock   clock.PassiveClock

	memory memory
}

// SetupWithManager registers the reconciler for policies, for pods that policies
// select, for budgets that they draw from, and for what the fleet reports.
func (r *RateLimitPolicyReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		// No predicate: a status that somebody wiped is written again.
		For(&v1alpha1.RateLimitPolicy{}).
		Watches(&v1alpha1.RateLimitPolicy{}, r.publishing()).
		Watches(&corev1.Pod{}, onPods(r.policiesOf), builder.WithPredicates(podMatters())).
		Watches(&v1alpha1.FederatedBudget{}, handler.EnqueueRequestsFromMapFunc(r.policiesDrawing), builder.WithPredicates(budgetMatters())).
		WatchesRawSource(named(r.Fleet.Changed())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// publishing makes the fleet look at the namespace as soon as a policy is seen to be
// new, edited or gone. It does not queue the policy: others may wait there for their
// status to be written.
func (r *RateLimitPolicyReconciler) publishing() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { r.Fleet.Refresh(e.Object.GetNamespace()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				r.Fleet.Refresh(e.ObjectNew.GetNamespace())
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { r.Fleet.Refresh(e.Object.GetNamespace()) },
	}
}

// policiesOf returns the policies that select a pod.
func (r *RateLimitPolicyReconciler) policiesOf(ctx context.Context, pod client.Object) []reconcile.Request {
	var list v1alpha1.RateLimitPolicyList
	if err := r.Client.List(ctx, &list, client.InNamespace(pod.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the policies that select a pod", "pod", client.ObjectKeyFromObject(pod))
		return nil
	}
	var requests []reconcile.Request
	for _, p := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err == nil && selector.Matches(labels.Set(pod.GetLabels())) {
			requests = append(requests, request(&p))
		}
	}
	return requests
}

// Reconcile gathers, publishes and reports one policy.
func (r *RateLimitPolicyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &scope{policy: &v1alpha1.RateLimitPolicy{}, now: r.Clock.Now()}
	if err := r.Client.Get(ctx, req.NamespacedName, s.policy); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the policy: %w", err)
	}
	if err := r.gather(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	r.publish(s)
	if err := r.setBack(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return r.report(ctx, s)
}

// forget makes the fleet stop enforcing a policy that is gone. Its counters stay
// in the store until their windows end, so creating it again opens no second
// budget; there is nothing to finalize.
func (r *RateLimitPolicyReconciler) forget(policy types.NamespacedName) {
	r.Fleet.Refresh(policy.Namespace)
	r.memory.drop(policy)
}

// gather fills the scope.
func (r *RateLimitPolicyReconciler) gather(ctx context.Context, s *scope) error {
	budgets, err := r.gatherBudgets(ctx, s)
	if err != nil {
		return err
	}
	if s.judge(budgets); !s.accepted() {
		return nil
	}
	selected, err := listPods(ctx, r.Pods, s.policy.Namespace, &s.policy.Spec.PodSelector)
	if err != nil {
		return err
	}
	s.pods = selectPods(selected)
	seen := r.Fleet.Observe(s.policy.Namespace, s.policy.Name)
	r.Fleet.Bury(s.policy.Namespace, s.policy.Name, gone(seen.Limits, selected))
	s.observe(seen)
	r.gatherStore(ctx, s)
	r.gatherKeys(ctx, s)
	return nil
}

// publish makes the fleet look at the namespace again when the policy or the set of its
// enforcers changed. The snapshot of a sidecar is resolved then, from the cache; a
// sidecar that connects later receives it by itself.
func (r *RateLimitPolicyReconciler) publish(s *scope) {
	name := client.ObjectKeyFromObject(s.policy)
	if r.memory.publish(name, fingerprint(s)) {
		r.Fleet.Refresh(s.policy.Namespace)
	}
}

// fingerprint changes when what the policy's pods have to enforce may have
// changed because of this policy.
func fingerprint(s *scope) string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s/%d/%s/%v", s.policy.UID, s.policy.Generation, s.store.version, s.unmet == nil)
	if of := s.policy.Status.Store; of != nil {
		_, _ = fmt.Fprintf(sum, "/%v/%s/%v", of.Active, of.Phase, of.ServesFrom)
	}
	if s.enforced.ResetAt != 0 {
		_, _ = fmt.Fprintf(sum, "/%d", s.enforced.ResetAt)
	}
	for _, l := range s.enforced.Limits {
		if l.Budget != nil {
			_, _ = fmt.Fprintf(sum, "/%s=%v", l.Budget.ID, l.Rates)
			if l.Key != nil {
				_, _ = fmt.Fprintf(sum, "/%d%+v%#v", l.Clusters, *l.Key, l.Overrides)
			}
		}
	}
	for _, v := range s.verifications {
		_, _ = io.WriteString(sum, v.fingerprint())
	}
	return sumOf(sum, s.pods.enforcers)
}

// sumOf returns a sum after all enforcers were added to it. There may be thousands of them.
func sumOf(sum hash.Hash, enforcers []enforcer) string {
	var buffer []byte
	for _, e := range enforcers {
		buffer = append(append(buffer[:0], '/'), e.uid...)
		sum.Write(buffer)
	}
	return string(sum.Sum(nil))
}

// report writes the status if it changed and is due, and says when to
// look again: figures move without an event.
func (r *RateLimitPolicyReconciler) report(ctx context.Context, s *scope) (ctrl.Result, error) {
	name, next := client.ObjectKeyFromObject(s.policy), statusOf(s)
	wait, changed := writeDelay(changeOf(asSent(&r.memory, name, &s.policy.Status), &next), s.policy.UID, s.now.Sub(r.memory.written(name)))
	switch {
	case !changed:
		return ctrl.Result{RequeueAfter: s.again()}, nil
	case wait > 0:
		return ctrl.Result{RequeueAfter: sooner(wait, s.soon())}, nil
	}
	before := s.policy.DeepCopy()
	s.policy.Status = next
	switch stale, err := writeStatus(ctx, r.Client, unwritten(&before.Status), before, s.policy); {
	case err != nil:
		return ctrl.Result{}, err
	case stale:
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	wrote(ctx, &r.memory, name, s.now, &next, &s.policy.Status)
	record(r.Events, s.policy, "RateLimitPolicy", before.Status.Conditions, s.policy.Status.Conditions)
	return ctrl.Result{RequeueAfter: s.again()}, nil
}

// unwritten reports whether no controller has written anything of a status.
func unwritten(status *v1alpha1.RateLimitPolicyStatus) bool {
	return status.ObservedGeneration == 0 && status.Reset == nil
}

// again is when the policy's figures are due; zero when there are none to come.
func (s *scope) again() time.Duration {
	if !s.accepted() || len(s.pods.enforcers) == 0 && len(s.observation.Sessions) == 0 {
		return s.soon()
	}
	return sooner(figuresIntervalOf(s.policy.UID), s.soon())
}

// soon is when something else is due than figures; zero when nothing is.
func (s *scope) soon() time.Duration {
	next := s.move.step.Again
	for _, v := range s.verifications {
		next = sooner(next, v.again(s))
	}
	return next
}

// sooner returns the shorter of two waits. Zero stands for no wait.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// resetWanted reports whether the policy asks for a counter to be set back, and nobody has
// begun that.
func (s *scope) resetWanted() bool {
	request, had := requestOf(s.policy), s.policy.Status.Reset
	return request != "" && s.accepted() && (had == nil || had.Request != request)
}

// requestOf returns the request that the policy carries now, empty for none, as far as a
// status has room for it.
func requestOf(p *v1alpha1.RateLimitPolicy) string {
	return shortened(p.Annotations[v1alpha1.ResetAnnotation])
}

// setBack carries out a request to set a counter back, at most once. Before the store is
// asked, the one writer whose status was the newest writes that the request has begun.
// Each time that a store is asked may admit the limit once more.
func (r *RateLimitPolicyReconciler) setBack(ctx context.Context, s *scope) error {
	if _, leads := r.Fleet.Now(); !leads || !s.resetWanted() {
		return nil
	}
	before := s.policy.DeepCopy()
	begun := &v1alpha1.ResetStatus{Request: requestOf(s.policy), Phase: v1alpha1.ResetStarted, Time: s.second()}
	if had := before.Status.Reset; had != nil {
		begun.At = had.At // windows in which an earlier one fell may still be open
	}
	target, invalid := translate.ResetOf(s.policy, &s.enforced)
	switch {
	case invalid != nil:
		failed(begun, "annotation "+v1alpha1.ResetAnnotation+": "+invalid.Error())
	case s.enforced.Draining:
		failed(begun, "the counters move to another store: ask again when status.store.phase is Serving")
	}
	s.policy.Status.Reset = begun
	switch stale, err := writeStatus(ctx, r.Client, false, before, s.policy); {
	case err != nil:
		return err
	case stale:
		return fmt.Errorf("the policy changed while a reset was to begin: trying again")
	}
	if begun.Phase == v1alpha1.ResetStarted {
		if err := r.ask(ctx, s, target); err != nil {
			return err
		}
	}
	r.emitReset(s)
	return nil
}

// ask has the store set the counter back and writes what came of it. Nothing else writes
// that, so it need not be the newest status that it is written into.
func (r *RateLimitPolicyReconciler) ask(ctx context.Context, s *scope, target translate.Reset) error {
	at, err := r.resetCounter(ctx, s, target)
	before := s.policy.DeepCopy()
	done := s.policy.Status.Reset
	done.Phase, done.Time = v1alpha1.ResetDone, s.second()
	done.Message = fmt.Sprintf("limit %s is set back", target.Limit)
	if target.Hash != nil {
		done.Message = fmt.Sprintf("limit %s is set back for the value with hash %s", target.Limit, *target.Hash)
	}
	if err != nil {
		failed(done, fmt.Sprintf("it is not known whether limit %s was set back (%v): ask again with another request", target.Limit, err))
		at = limiter.Instant(s.now.UnixMicro()) // it may have been
	}
	done.At = &metav1.MicroTime{Time: time.UnixMicro(int64(at))}
	if err := r.Client.Status().Patch(ctx, s.policy, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the result of a reset: %w", err)
	}
	return nil
}

func (r *RateLimitPolicyReconciler) resetCounter(ctx context.Context, s *scope, target translate.Reset) (limiter.Instant, error) {
	scope := store.Scope{Cluster: r.Cluster, Namespace: s.policy.Namespace, Policy: s.policy.Name, Limit: target.Limit}
	of := s.enforced.Store
	if of.Type == policy.ControllerStore {
		return r.Fleet.Reset(ctx, scope, target.Hash)
	}
	secret, _, err := r.Secrets.Data(ctx, of)
	if err != nil {
		return 0, err
	}
	return r.Stores.Reset(ctx, of, secret, scope, target.Hash)
}

func (r *RateLimitPolicyReconciler) emitReset(s *scope) {
	status := s.policy.Status.Reset
	eventType, reason := corev1.EventTypeNormal, "Reset"
	if status.Phase == v1alpha1.ResetFailed {
		eventType, reason = corev1.EventTypeWarning, "ResetFailed"
	}
	r.Events.Eventf(referenceTo(s.policy, "RateLimitPolicy"), nil, eventType, reason, "Reset", "%s", note(status.Message+" (request "+status.Request+")"))
}

func failed(r *v1alpha1.ResetStatus, message string) {
	r.Phase, r.Message = v1alpha1.ResetFailed, shortened(message)
}

func (s *scope) second() *metav1.Time { return &metav1.Time{Time: s.now.Truncate(time.Second)} }

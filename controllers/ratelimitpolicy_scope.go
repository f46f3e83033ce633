package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/internal/coordinator"
	"github.com/weir-dev/weir/internal/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// scope is all that one reconciliation of a policy knows. Everything that is
// said about the policy is a function of it.
type scope struct {
	policy      *v1alpha1.RateLimitPolicy
	invalid     error         // why the policy cannot be enforced; nil when it can
	doubts      []string      // why it may not do what was meant
	enforced    policy.Policy // as sidecars enforce it; the zero value while it is invalid
	pods        pods
	observation coordinator.Observation
	store       probed // zero while the controller itself is the store
	move        move
	now         time.Time
}

// pods are the selected pods, each list by name.
type pods struct {
	enforcers  []enforcer // carry a sidecar and are not finished
	leaving    []enforcer // carry a sidecar, run, and are on their way out
	uninjected []string   // run without a sidecar
}

// enforcer is a pod that has to enforce the policy.
type enforcer struct {
	name    string
	uid     types.UID
	running bool // its app is, so there may be requests to let through
}

// probed is what the controller itself found out about the store that serves.
type probed struct {
	version   string // of the credentials
	guarantee v1alpha1.Guarantee
	err       error
}

// observe takes over what the fleet said. Figures of limits that the spec no longer
// has are left out, and of those measured under another generation only the flow
// is kept: what its windows admitted says nothing of this one's.
func (s *scope) observe(o coordinator.Observation) {
	s.observation = o
	s.observation.Limits = nil
	for _, l := range o.Limits {
		if !slices.ContainsFunc(s.policy.Spec.Limits, func(spec v1alpha1.Limit) bool { return spec.Name == l.Limit }) {
			continue
		}
		if l.Generation != translate.Generation(s.policy) && l.Verdict != audit.NoTraffic {
			l.Verdict, l.Overshoot, l.UnderUtilization = audit.Starting, nil, nil
		}
		s.observation.Limits = append(s.observation.Limits, l)
	}
}

// unsettled reports whether responses tell what requests of the limit cost, so that
// nothing bounds what a window admits.
func (s *scope) unsettled(limit string) bool {
	return slices.ContainsFunc(s.enforced.Limits, func(l policy.Limit) bool { return l.Name == limit && !l.Settled() })
}

// carry returns how many units a pod may carry into a window of the limit.
func (s *scope) carry(limit string) int64 {
	for _, l := range s.enforced.Limits {
		if l.Name == limit {
			return l.Carry(&s.enforced)
		}
	}
	return 0
}

// selectPods sorts the pods a policy selects into those that enforce it and
// those that run past it. Pods that are finished are neither.
func selectPods(selected []corev1.Pod) pods {
	var p pods
	for _, pod := range selected {
		switch {
		case pod.DeletionTimestamp != nil && pod.Status.Phase == corev1.PodRunning && pod.Labels[v1alpha1.EnforcerLabel] == "true":
			p.leaving = append(p.leaving, enforcer{pod.Name, pod.UID, true})
		case finished(&pod):
		case pod.Labels[v1alpha1.EnforcerLabel] == "true":
			p.enforcers = append(p.enforcers, enforcer{pod.Name, pod.UID, pod.Status.Phase == corev1.PodRunning})
		case pod.Status.Phase == corev1.PodRunning:
			p.uninjected = append(p.uninjected, pod.Name)
		}
	}
	slices.SortFunc(p.enforcers, func(a, b enforcer) int { return cmp.Compare(a.name, b.name) })
	slices.Sort(p.uninjected)
	return p
}

func finished(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// listPods returns the pods that the policy selects, from the cache.
func listPods(ctx context.Context, reader client.Reader, p *v1alpha1.RateLimitPolicy) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.podSelector: %w", err)
	}
	var list corev1.PodList
	if err := reader.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the selected pods: %w", err)
	}
	return list.Items, nil
}

// laggard is an enforcer that does not run the policy's generation.
type laggard struct{ pod, why string }

// String names the pod and says why it lags.
func (l laggard) String() string { return l.pod + " (" + l.why + ")" }

// laggards returns the enforcers that have not acknowledged the policy's
// generation, by name.
func (s *scope) laggards() []laggard {
	sessions := s.sessions()
	var lagging []laggard
	for _, e := range s.pods.enforcers {
		session, connected := sessions[string(e.uid)]
		if why := lags(session, connected, translate.Generation(s.policy)); why != "" {
			lagging = append(lagging, laggard{e.name, why})
		}
	}
	return lagging
}

// unheard returns the names of the running enforcers that nothing is heard of. A
// sidecar that cannot reach the controller may still admit requests.
func (s *scope) unheard() []string {
	sessions := s.sessions()
	var names []string
	for _, e := range s.pods.enforcers {
		if _, connected := sessions[string(e.uid)]; e.running && !connected {
			names = append(names, e.name)
		}
	}
	return names
}

// sessions returns the session that speaks for each pod, by the pod's UID.
func (s *scope) sessions() map[string]coordinator.Session {
	sessions := make(map[string]coordinator.Session, len(s.observation.Sessions))
	for _, session := range s.observation.Sessions {
		// A sidecar that restarted may still have its old session: the later one
		// speaks for the pod.
		if old, ok := sessions[session.PodUID]; !ok || old.Since.Before(session.Since) {
			sessions[session.PodUID] = session
		}
	}
	return sessions
}

// lags says why a session does not stand for an enforced generation; empty when
// it does.
func lags(s coordinator.Session, connected bool, generation int64) string {
	switch {
	case !connected:
		return "not connected"
	case s.Error != "":
		return "refused it: " + s.Error
	case s.Generation == 0:
		return "has not acknowledged the policy"
	case s.Generation != generation:
		return "runs an earlier generation"
	}
	return ""
}

package controllers

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/condition"
	"github.com/weir-dev/weir/internal/coordinator"
)

// A roster is who has to enforce a version of an object, and who says that it does.
type roster struct {
	kind       string // as messages call the object
	generation int64  // as users know it
	version    int64  // as sidecars know it
	pods       pods
	sessions   map[string]coordinator.Session // that speaks for each pod, by the pod's UID
}

// programmed speaks of what sidecars acknowledged, never of what was sent.
//
//	enforcers  lagging  uninjected   status  reason
//	none       –        any          False   NoEnforcers
//	some       some     any          False   Reconciling
//	some       none     some         True    PartiallyProgrammed
//	some       none     none         True    Programmed
func (r *roster) programmed() metav1.Condition {
	const kind = v1alpha1.ProgrammedCondition
	enforcers, lagging := len(r.pods.enforcers), r.laggards()
	switch {
	case enforcers == 0 && len(r.pods.uninjected) == 0:
		return condition.False(kind, v1alpha1.NoEnforcersReason, "spec.podSelector selects no running pod")
	case enforcers == 0:
		return condition.False(kind, v1alpha1.NoEnforcersReason, "no selected pod has a sidecar"+r.uninjected())
	case len(lagging) > 0:
		return condition.False(kind, v1alpha1.ReconcilingReason, fmt.Sprintf("%d of %d enforcers do not run generation %d yet: %s",
			len(lagging), enforcers, r.generation, nameSome(lagging))+r.uninjected())
	case len(r.pods.uninjected) > 0:
		return condition.True(kind, v1alpha1.PartiallyProgrammedReason, allRun(enforcers, r.generation)+r.uninjected())
	}
	return condition.True(kind, v1alpha1.ProgrammedReason, allRun(enforcers, r.generation))
}

func allRun(enforcers int, generation int64) string {
	return fmt.Sprintf("%d of %d enforcers run generation %d", enforcers, enforcers, generation)
}

// uninjected names the pods whose requests pass uncounted, and the cure.
func (r *roster) uninjected() string {
	if len(r.pods.uninjected) == 0 {
		return ""
	}
	return fmt.Sprintf("; running without a sidecar, so not limited: %s; opt them in and restart them, or select fewer pods", nameSome(r.pods.uninjected))
}

// enforcement counts every running pod, so that one without a sidecar shows.
func (r *roster) enforcement() *v1alpha1.Enforcement {
	enforcers := len(r.pods.enforcers)
	return &v1alpha1.Enforcement{
		Desired: int32(enforcers + len(r.pods.uninjected)),
		Current: int32(enforcers - len(r.laggards())),
	}
}

// laggard is an enforcer that does not run the version.
type laggard struct{ pod, why string }

// String names the pod and says why it lags.
func (l laggard) String() string { return l.pod + " (" + l.why + ")" }

// laggards returns the enforcers that have not acknowledged the version, by name.
func (r *roster) laggards() []laggard {
	var lagging []laggard
	for _, e := range r.pods.enforcers {
		session, connected := r.sessions[string(e.uid)]
		if why := lags(session, connected, r.version, r.kind); why != "" {
			lagging = append(lagging, laggard{e.name, why})
		}
	}
	return lagging
}

// unheard returns the names of the running enforcers that nothing is heard of. A
// sidecar that cannot reach the controller may still admit requests.
func (r *roster) unheard() []string {
	var names []string
	for _, e := range r.pods.enforcers {
		if _, connected := r.sessions[string(e.uid)]; e.running && !connected {
			names = append(names, e.name)
		}
	}
	return names
}

// speaking returns the one that speaks for each pod, by the pod's UID: a sidecar that
// restarted may still have its old session, so the later.
func speaking[S any](all []S, session func(S) coordinator.Session) map[string]S {
	byPod := make(map[string]S, len(all))
	for _, s := range all {
		pod := session(s).PodUID
		if old, ok := byPod[pod]; !ok || session(old).Since.Before(session(s).Since) {
			byPod[pod] = s
		}
	}
	return byPod
}

// lags says why a session does not stand for an enforced generation; empty when
// it does.
func lags(s coordinator.Session, connected bool, version int64, kind string) string {
	switch {
	case !connected:
		return "not connected"
	case s.Error != "":
		return "refused it: " + s.Error
	case s.Generation == 0:
		return "has not acknowledged the " + kind
	case s.Generation != version:
		return "runs an earlier generation"
	}
	return ""
}

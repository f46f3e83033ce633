package controllers

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// An enforcement holds the pods that have to enforce a version of an object, and the sessions
// that report whether they do.
type enforcement struct {
	kind       string // as messages call the object
	checked    bool   // the check API decides by it
	generation int64  // as users know it
	version    int64  // as sidecars know it
	pods       pods
	sessions   map[string]*coordinator.Session // that speaks for each pod, by the pod's UID

	judged *enforcerStates // once states was called
}

// newEnforcement returns one by the sessions that speak for pods, by the pod's UID. A status asks it
// for many parts, and there may be thousands of pods: each is looked at once.
func newEnforcement[S any](
	kind string, generation, version int64, of pods, sessions map[string]*S, session func(*S) *coordinator.Session,
) *enforcement {
	r := &enforcement{kind: kind, generation: generation, version: version, pods: of, sessions: make(map[string]*coordinator.Session, len(sessions))}
	for pod, s := range sessions {
		r.sessions[pod] = session(s)
	}
	return r
}

// programmed judges by what sidecars acknowledged, never by what was sent.
//
//	enforcers  lagging  idle  uninjected   status  reason
//	none       –        –     any          False   NoEnforcers
//	some       some     any   any          False   Reconciling
//	some       none     some  any          False   PartiallyProgrammed
//	some       none     none  some         True    PartiallyProgrammed
//	some       none     none  none         True    Programmed
func (r *enforcement) programmed() metav1.Condition {
	const kind = v1alpha1.ProgrammedCondition
	m := r.states()
	beside := m.idle() + m.asked() + r.exposed() + r.uninjected()
	switch {
	case m.enforcers == 0 && len(r.pods.uninjected) == 0:
		return condition.False(kind, v1alpha1.NoEnforcersReason, "spec.podSelector selects no running pod")
	case m.enforcers == 0:
		return condition.False(kind, v1alpha1.NoEnforcersReason, "no selected pod has a sidecar"+beside)
	case len(m.lagging) > 0:
		return condition.False(kind, v1alpha1.ReconcilingReason, fmt.Sprintf("%d of %d enforcers do not run generation %d yet: %s",
			len(m.lagging), m.enforcers, r.generation, nameSome(m.lagging))+beside)
	}
	run := fmt.Sprintf("%d of %d enforcers run generation %d", m.current(), m.enforcers, r.generation) + beside
	switch {
	case m.current() < m.enforcers:
		return condition.False(kind, v1alpha1.PartiallyProgrammedReason, run)
	case len(r.pods.uninjected) > 0:
		return condition.True(kind, v1alpha1.PartiallyProgrammedReason, run)
	}
	return condition.True(kind, v1alpha1.ProgrammedReason, run)
}

// uninjected names the pods whose requests pass uncounted, and the cure.
func (r *enforcement) uninjected() string {
	if len(r.pods.uninjected) == 0 {
		return ""
	}
	return fmt.Sprintf("; running without a sidecar, so not limited: %s; opt them in and restart them, or select fewer pods", nameSome(r.pods.uninjected))
}

// exposed names the pods that are reached past their sidecar, and the cure.
func (r *enforcement) exposed() string {
	if len(r.pods.exposed) == 0 {
		return ""
	}
	return fmt.Sprintf("; not limited where requests come by a host port, which leads past the sidecar: %s; remove hostPort", nameUpTo(idleNamedAtMost, r.pods.exposed))
}

// status counts every running pod, so that one without a sidecar, or with one that
// limits nothing, shows.
func (r *enforcement) status() *v1alpha1.Enforcement {
	m := r.states()
	return &v1alpha1.Enforcement{
		Desired: int32(m.enforcers + len(r.pods.uninjected)),
		Current: int32(m.current()),
	}
}

// unheard returns the names of the running enforcers that nothing is heard of. A
// sidecar that cannot reach the controller may still admit requests.
func (r *enforcement) unheard() []string {
	var names []string
	for _, e := range r.pods.enforcers {
		if _, connected := r.sessions[string(e.uid)]; e.running && !connected {
			names = append(names, e.name)
		}
	}
	return names
}

// past returns the names of the pods to which requests pass that nothing limits.
func (r *enforcement) past() []string {
	m := r.states()
	names := slices.Concat(r.pods.uninjected, r.pods.exposed, m.bypassed, m.shadowed, m.uncaptured, m.unasked)
	slices.Sort(names)
	return names
}

// unread returns the condition WithinBound while the controller cannot read something that
// a sidecar sends: what it says there counts for nothing.
func (r *enforcement) unread() (metav1.Condition, bool) {
	var named []string
	for _, session := range r.sessions {
		if session.Rejected != "" {
			named = append(named, session.Pod+" ("+session.Rejected+")")
		}
	}
	slices.Sort(named)
	return condition.Unknown(v1alpha1.WithinBoundCondition, v1alpha1.RowsRejectedReason,
		"the controller cannot read what these sidecars send, so it counts for nothing: "+nameSome(named)), len(named) > 0
}

// speaking returns the one that speaks for each pod, by the pod's UID: a sidecar that
// restarted may still have its old session, so the later.
func speaking[S any](all []S, session func(*S) *coordinator.Session) map[string]*S {
	byPod := make(map[string]*S, len(all))
	for i := range all {
		s := &all[i]
		pod := session(s).PodUID
		if old, ok := byPod[pod]; !ok || session(old).Since.Before(session(s).Since) {
			byPod[pod] = s
		}
	}
	return byPod
}

// idleNamedAtMost is how many pods that limit nothing a message names of each kind: they
// mostly come of one template.
const idleNamedAtMost = 3

// enforcerStates holds the states of the enforcers, each list by name.
type enforcerStates struct {
	enforcers  int       // that there have to be
	lagging    []laggard // do not run the version
	bypassed   []string  // let everything pass, as their annotation says
	shadowed   []string  // refuse nothing, as their annotation says
	uncaptured []string  // no request comes to their sidecar, and nobody chose that
	unasked    []string  // of a pool: their app asks, as their annotation says, but not for slots
	explicit   []string  // limit what their app asks about, as their annotation says
}

// states sorts the enforcers. A pod that does not run, and whose sidecar is not
// connected, lets nothing through and does not count as one of them yet: it may wait for a node. A
// sidecar that does not report its mode or how it is captured is taken to limit all.
func (r *enforcement) states() *enforcerStates {
	if r.judged != nil {
		return r.judged
	}
	m := new(enforcerStates)
	r.judged = m
	for _, e := range r.pods.enforcers {
		session, connected := r.sessions[string(e.uid)]
		if !connected && !e.running {
			continue
		}
		if !connected {
			session = &coordinator.Session{}
		}
		m.enforcers++
		why := lags(session, connected, r.version, r.kind)
		switch {
		// Such a sidecar never acknowledges.
		case session.Mode == fleetpb.Mode_MODE_BYPASS:
			m.bypassed = append(m.bypassed, e.name)
		case session.Mode == fleetpb.Mode_MODE_SHADOW:
			m.shadowed = append(m.shadowed, e.name)
		case why != "":
			m.lagging = append(m.lagging, laggard{e.name, why})
		case session.Capture == fleetpb.Capture_CAPTURE_NONE:
			m.uncaptured = append(m.uncaptured, e.name)
		case session.Capture == fleetpb.Capture_CAPTURE_EXPLICIT && !r.checked:
			m.unasked = append(m.unasked, e.name)
		case session.Capture == fleetpb.Capture_CAPTURE_EXPLICIT:
			m.explicit = append(m.explicit, e.name)
		}
	}
	return m
}

// current is how many enforce the version.
func (m *enforcerStates) current() int {
	return m.enforcers - len(m.lagging) - len(m.bypassed) - len(m.shadowed) - len(m.uncaptured) - len(m.unasked)
}

// idle names the pods whose sidecar limits nothing, and the cures.
func (m *enforcerStates) idle() string {
	return notLimited(m.uncaptured, "no port of theirs is captured",
		"name it http, or annotate the pod with "+v1alpha1.InboundPortsAnnotation+", or with "+v1alpha1.CaptureAnnotation+": explicit if the app asks the check API") +
		notLimited(m.unasked, v1alpha1.CaptureAnnotation+" is explicit and the check API knows no pools", "have their port captured, or select fewer pods") +
		notLimited(m.bypassed, v1alpha1.ModeAnnotation+" is bypass", "take that out of the pod template") +
		notLimited(m.shadowed, v1alpha1.ModeAnnotation+" is shadow", "take that out of the pod template")
}

func notLimited(pods []string, why, cure string) string {
	if len(pods) == 0 {
		return ""
	}
	return fmt.Sprintf("; not limited, because %s: %s; %s", why, nameUpTo(idleNamedAtMost, pods), cure)
}

// asked names the pods that limit no more than their app asks about.
func (m *enforcerStates) asked() string {
	if len(m.explicit) == 0 {
		return ""
	}
	return fmt.Sprintf("; limited only where the app asks, as %s is explicit: %s", v1alpha1.CaptureAnnotation, nameUpTo(idleNamedAtMost, m.explicit))
}

// laggard is an enforcer that does not run the version.
type laggard struct{ pod, why string }

// String names the pod and says why it lags.
func (l laggard) String() string { return l.pod + " (" + l.why + ")" }

// lags says why a session does not stand for an enforced generation; empty when
// it does.
func lags(s *coordinator.Session, connected bool, version int64, kind string) string {
	switch {
	case !connected:
		return "not heard of yet"
	case s.Error != "":
		return "refused it: " + s.Error
	case s.Generation == 0:
		return "has not acknowledged the " + kind
	case s.Generation != version:
		return "runs an earlier generation"
	}
	return ""
}

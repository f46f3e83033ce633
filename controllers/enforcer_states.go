package controllers

import (
	"fmt"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/fleetpb"
)

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
// connected, lets nothing through and is none of them yet: it may wait for a node. A
// sidecar that does not report its mode or how it is captured is taken to limit all.
func (r *enforcement) states() enforcerStates {
	var m enforcerStates
	for _, e := range r.pods.enforcers {
		session, connected := r.sessions[string(e.uid)]
		if !connected && !e.running {
			continue
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

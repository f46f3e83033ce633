package controllers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// said are pods whose sidecars acknowledged the generation, and reported this of themselves.
func said(capture fleetpb.Capture, mode fleetpb.Mode, names ...string) func(*scope) {
	return func(s *scope) {
		enforcers(names...)(s)
		for _, name := range names {
			session(coordinator.Session{Pod: name, PodUID: "uid-" + name, Capture: capture, Mode: mode, Generation: generation})(s)
		}
	}
}

// waiting are pods that do not run.
func waiting(names ...string) func(*scope) {
	return func(s *scope) {
		for _, name := range names {
			s.pods.enforcers = append(s.pods.enforcers, enforcer{name, types.UID("uid-" + name), false})
		}
	}
}

func TestProgrammedNamesPodsThatLimitNothing(t *testing.T) {
	const (
		redirect, port, explicit, none = fleetpb.Capture_CAPTURE_REDIRECT, fleetpb.Capture_CAPTURE_PORT, fleetpb.Capture_CAPTURE_EXPLICIT, fleetpb.Capture_CAPTURE_NONE
		enforce, shadow, bypass        = fleetpb.Mode_MODE_ENFORCE, fleetpb.Mode_MODE_SHADOW, fleetpb.Mode_MODE_BYPASS

		uncaptured = "; not limited, because no port of theirs is captured: "
		cure       = "; name it http, or annotate the pod with config.weir.dev/inbound-ports, or with config.weir.dev/capture: explicit if the app asks the check API"
	)
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ProgrammedCondition, Status: status, Reason: reason, Message: message}
	}
	counts := func(current, desired int32) v1alpha1.Enforcement {
		return v1alpha1.Enforcement{Current: current, Desired: desired}
	}
	tests := map[string]struct {
		scope *scope
		want  metav1.Condition
		pods  v1alpha1.Enforcement
	}{
		"captured pods limit": {
			newScope(said(redirect, enforce, "a"), said(port, enforce, "b")),
			is("True", "Programmed", "2 of 2 enforcers run generation 4"), counts(2, 2),
		},
		"sidecars that do not report it are taken to limit": {
			newScope(said(0, 0, "a")),
			is("True", "Programmed", "1 of 1 enforcers run generation 4"), counts(1, 1),
		},
		"so are those of a later version that say what is not known here": {
			newScope(said(99, 99, "a")),
			is("True", "Programmed", "1 of 1 enforcers run generation 4"), counts(1, 1),
		},
		"a pod whose traffic nobody captures does not": {
			newScope(said(redirect, enforce, "a"), said(none, enforce, "b")),
			is("False", "PartiallyProgrammed", "1 of 2 enforcers run generation 4"+uncaptured+"b"+cure), counts(1, 2),
		},
		"nor does any of a fleet, and three are named": {
			newScope(said(none, enforce, many("p", 8)...)),
			is("False", "PartiallyProgrammed", "0 of 8 enforcers run generation 4"+uncaptured+"p-00, p-01, p-02, and 5 more"+cure), counts(0, 8),
		},
		"a pod that chose explicit limits what its app asks": {
			newScope(said(redirect, enforce, "a"), said(explicit, enforce, "b")),
			is("True", "Programmed", "2 of 2 enforcers run generation 4; limited only where the app asks, as config.weir.dev/capture is explicit: b"), counts(2, 2),
		},
		"a bypassed pod limits nothing, and its refusal is not lag": {
			newScope(said(redirect, enforce, "a"), enforcers("b"),
				session(coordinator.Session{PodUID: "uid-b", Mode: bypass, Capture: redirect, Error: "the pod's mode is bypass: nothing is refused"})),
			is("False", "PartiallyProgrammed", "1 of 2 enforcers run generation 4; not limited, because weir.dev/mode is bypass: b; take that out of the pod template"), counts(1, 2),
		},
		"nor does a shadowed one": {
			newScope(said(redirect, enforce, "a"), said(redirect, shadow, "b")),
			is("False", "PartiallyProgrammed", "1 of 2 enforcers run generation 4; not limited, because weir.dev/mode is shadow: b; take that out of the pod template"), counts(1, 2),
		},
		"a laggard outweighs them, and all are named": {
			newScope(enforcers("a"), said(none, enforce, "b"), said(explicit, enforce, "c"), uninjected("d")),
			is("False", "Reconciling", "1 of 3 enforcers do not run generation 4 yet: a (not heard of yet)"+uncaptured+"b"+cure+
				"; limited only where the app asks, as config.weir.dev/capture is explicit: c"+
				"; running without a sidecar, so not limited: d; opt them in and restart them, or select fewer pods"), counts(1, 4),
		},
		"a pod that is not captured and lags is a laggard": {
			newScope(enforcers("a"), session(coordinator.Session{PodUID: "uid-a", Capture: none, Generation: 3})),
			is("False", "Reconciling", "1 of 1 enforcers do not run generation 4 yet: a (runs an earlier generation)"), counts(0, 1),
		},
		"a pod that waits for a node holds up nothing": {
			newScope(said(redirect, enforce, "a"), waiting("b")),
			is("True", "Programmed", "1 of 1 enforcers run generation 4"), counts(1, 1),
		},
		"as long as all wait there is nobody to enforce": {
			newScope(waiting("a", "b")),
			is("False", "NoEnforcers", "spec.podSelector selects no running pod"), counts(0, 0),
		},
		"a pod that is about to run, with a sidecar that is connected, does": {
			newScope(waiting("a"), acknowledged(3, "a")),
			is("False", "Reconciling", "1 of 1 enforcers do not run generation 4 yet: a (runs an earlier generation)"), counts(0, 1),
		},
		"a pod that runs and was never heard of does": {
			newScope(said(redirect, enforce, "a"), enforcers("b")),
			is("False", "Reconciling", "1 of 2 enforcers do not run generation 4 yet: b (not heard of yet)"), counts(1, 2),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := tc.scope.enforcement()
			if diff := cmp.Diff(tc.want, r.programmed()); diff != "" {
				t.Errorf("programmed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&tc.pods, r.status()); diff != "" {
				t.Errorf("enforcement (-want +got):\n%s", diff)
			}
		})
	}
}

// The check API hands out no slots, so a pool limits captured requests only.
func TestAPoolDoesNotLimitChecksOfAnApp(t *testing.T) {
	s := &poolScope{pool: &v1alpha1.ConcurrencyPool{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Generation: generation}}}
	s.pods.enforcers = []enforcer{{"a", "uid-a", true}}
	r := s.enforcement()
	r.sessions = map[string]*coordinator.Session{"uid-a": {Capture: fleetpb.Capture_CAPTURE_EXPLICIT, Generation: r.version}}
	want := metav1.Condition{Type: "Programmed", Status: "False", Reason: "PartiallyProgrammed", Message: "0 of 1 enforcers run generation 4; " +
		"not limited, because config.weir.dev/capture is explicit and the check API knows no pools: a; have their port captured, or select fewer pods"}
	if diff := cmp.Diff(want, r.programmed()); diff != "" {
		t.Errorf("programmed (-want +got):\n%s", diff)
	}
}

// TestSessionsAreNotCopied: there may be thousands, and all parts of a status look at them.
func TestSessionsAreNotCopied(t *testing.T) {
	const pods = 2000
	var names []string
	for i := range pods {
		names = append(names, fmt.Sprintf("web-%04d", i))
	}
	s := newScope(enforcers(names...), acknowledged(generation, names...))
	if got := s.enforcement().status(); got.Current != pods {
		t.Fatalf("%d pods enforce the policy, want %d", got.Current, pods)
	}
	first := func() { s.enforcing = nil; s.enforcement() }
	if n := testing.AllocsPerRun(5, first); n > pods/10 {
		t.Errorf("%d sessions are %v allocations", pods, n)
	}
	again := func() { s.enforcement().states() }
	if n := testing.AllocsPerRun(5, again); n > 0 {
		t.Errorf("another part of a status allocates %v times", n)
	}
	if got := len(fingerprint(s)); got > 64 {
		t.Errorf("%d bytes are remembered of %d pods", got, pods)
	}
}

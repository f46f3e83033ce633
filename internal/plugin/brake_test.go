package plugin

import (
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// modeOf returns the mode of an object.
func modeOf(t *testing.T, o client.Object) v1alpha1.PolicyMode {
	t.Helper()
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	return (&brakeable{object: o}).mode()
}

// eventsAbout returns reason, type and note of the Events of an object, oldest first.
func eventsAbout(t *testing.T, o client.Object) map[string]string {
	t.Helper()
	var list eventsv1.EventList
	if err := server.List(t.Context(), &list, client.InNamespace(o.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range list.Items {
		if e.Regarding.UID == o.GetUID() {
			found[e.Reason] = e.Type + " " + e.Note + " " + e.Regarding.Kind
		}
	}
	return found
}

func TestBrakeAndRelease(t *testing.T) {
	createNamespace(t)
	var p v1alpha1.RateLimitPolicy
	sample(t, "keyed.yaml", "shop", &p)
	var pool v1alpha1.ConcurrencyPool
	sample(t, "pool-quickstart.yaml", "shop", &pool)
	for name, tc := range map[string]struct {
		object client.Object
		kind   string
	}{
		"rlp/keyed": {&p, "RateLimitPolicy"}, "cpool/checkout": {&pool, "ConcurrencyPool"},
	} {
		create(t, tc.object, func() {})
		out, errs := run(t, "brake", "-n", "shop", name, "--reason", "orders are refused")
		if got := modeOf(t, tc.object); got != v1alpha1.ShadowMode || !strings.Contains(out, "is in mode Shadow") || !strings.Contains(out, "generation 2") || errs != "" {
			t.Fatalf("%s: mode %s after brake, which prints %q and %q", name, got, out, errs)
		}
		out, errs = run(t, "release", "-n", "shop", name)
		if got := modeOf(t, tc.object); got != v1alpha1.EnforceMode || !strings.Contains(out, "generation 3") || errs != "" {
			t.Fatalf("%s: mode %s after release, which prints %q and %q", name, got, out, errs)
		}
		events := eventsAbout(t, tc.object)
		if want := "Warning kubectl weir brake: orders are refused " + tc.kind; events["Braked"] != want {
			t.Errorf("%s: Events are %q, want %q", name, events, want)
		}
		if want := "Normal kubectl weir release " + tc.kind; events["Released"] != want {
			t.Errorf("%s: Events are %q, want %q", name, events, want)
		}
		// An object can be braked and released again.
		run(t, "brake", "-n", "shop", name)
		if run(t, "release", "-n", "shop", name); modeOf(t, tc.object) != v1alpha1.EnforceMode {
			t.Errorf("%s: it is not enforced after a second release", name)
		}
	}
}

// TestReleaseLeavesATrial: a Shadow that its author set is ended by force only.
func TestReleaseLeavesATrial(t *testing.T) {
	createNamespace(t)
	var p v1alpha1.RateLimitPolicy
	sample(t, "shadow.yaml", "shop", &p)
	create(t, &p, func() {})
	args := []string{"release", "-n", "shop", "rlp/" + p.Name, "--kubeconfig", kubeconfig}
	if _, _, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), "and not by brake") || modeOf(t, &p) != v1alpha1.ShadowMode {
		t.Errorf("error %v, and the mode is %s", err, p.Spec.Mode)
	}
	if _, _, err := execute(t, append(args, "--force")...); err != nil || modeOf(t, &p) != v1alpha1.EnforceMode {
		t.Errorf("error %v, and the mode is %s", err, p.Spec.Mode)
	}
}

// TestBrakeLosesNoEdit: an object that changed since it was read is left as it is.
func TestBrakeLosesNoEdit(t *testing.T) {
	createNamespace(t)
	var p v1alpha1.RateLimitPolicy
	sample(t, "keyed.yaml", "shop", &p)
	create(t, &p, func() {})
	stale := p.DeepCopy()
	edited := p.DeepCopy()
	edited.Spec.Limits[0].Rates[0].Limit = 7
	if err := server.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	b := &brakeable{at: &session{Client: server}, kind: "RateLimitPolicy", object: stale}
	if err := b.patch(t.Context(), `"Shadow"`); err == nil || modeOf(t, &p) != v1alpha1.EnforceMode {
		t.Errorf("error %v, and the mode is %s", err, p.Spec.Mode)
	}
}

func TestBrakeNamesTheCure(t *testing.T) {
	createNamespace(t)
	var p v1alpha1.RateLimitPolicy
	sample(t, "shadow.yaml", "shop", &p)
	create(t, &p, func() {})
	for want, args := range map[string][]string{
		"is in mode Shadow already":   {"brake", "rlp/" + p.Name},
		"use rlp/NAME or cpool/NAME":  {"brake", p.Name},
		"name the policies that draw": {"brake", "fbud/world"},
		"choose another with -n":      {"brake", "rlp/absent"},
		`the object is "rlp/"`:        {"release", "rlp/"},
	} {
		if _, _, err := execute(t, append(args, "-n", "shop", "--kubeconfig", kubeconfig)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
	if _, _, err := execute(t, "release", "rlp/"+p.Name, "--force", "-n", "shop", "--kubeconfig", kubeconfig); err != nil {
		t.Fatal(err)
	}
	if _, _, err := execute(t, "release", "rlp/"+p.Name, "-n", "shop", "--kubeconfig", kubeconfig); err == nil || !strings.Contains(err.Error(), "is in mode Enforce already") {
		t.Errorf("error %v of a second release", err)
	}
}

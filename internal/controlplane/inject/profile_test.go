package inject

import (
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	psa "k8s.io/pod-security-admission/policy"
)

// harden makes a pod keep to the restricted profile as far as settings can.
func harden(spec *corev1.PodSpec) {
	for c := range containers(spec) {
		c.SecurityContext = securityContext()
		for i := range c.Ports {
			c.Ports[i].HostPort = 0
		}
	}
	spec.SecurityContext = nil
}

// profileVersions are the oldest that a cluster which takes Weir enforces, those on
// either side of the last change of a check, and the newest.
func profileVersions() []api.Version {
	return []api.Version{api.MajorMinorVersion(1, 29), api.MajorMinorVersion(1, 34), api.MajorMinorVersion(1, 35), api.LatestVersion()}
}

// redirectNeeds are the checks of the restricted profile that redirection fails, and
// why: it is root with one capability, as no other user gets one from the kubelet.
var redirectNeeds = map[psa.CheckID]string{
	"capabilities_baseline":   "it adds NET_ADMIN",
	"capabilities_restricted": "it adds NET_ADMIN",
	"runAsNonRoot":            "it runs as root",
	"runAsUser":               "it runs as user 0",
}

// requireProfile checks that what each check of the restricted profile admits, it
// admits once injected, apart from what redirection is known to need; and that
// redirection does need that.
func requireProfile(t *testing.T, pod, once *corev1.Pod, capture Capture) {
	t.Helper()
	for _, version := range profileVersions() {
		for _, check := range psa.DefaultChecks() {
			before, after := passes(check, pod, version), passes(check, once, version)
			_, needed := redirectNeeds[check.ID]
			needed = needed && capture == CaptureRedirect
			// Newer profiles let root be root in a user namespace.
			always := once.Spec.HostUsers == nil || *once.Spec.HostUsers
			switch {
			case needed && after && always && known(check, version):
				t.Errorf("check %s %s admits redirection: take it from the list", check.ID, version.String())
			case !needed && before && !after:
				t.Errorf("check %s %s admits the pod and refuses it once it is injected", check.ID, version.String())
			}
		}
	}
}

// known reports whether the check is part of the profile of that version.
func known(check psa.Check, version api.Version) bool {
	return version.Latest() || !version.Older(check.Versions[0].MinimumVersion)
}

// passes asks the check in its version of that time.
func passes(check psa.Check, pod *corev1.Pod, version api.Version) bool {
	for _, c := range slices.Backward(check.Versions) {
		if version.Latest() || !version.Older(c.MinimumVersion) {
			return c.CheckPod(&pod.ObjectMeta, &pod.Spec).Allowed
		}
	}
	return true
}

func admitted(t *testing.T, pod *corev1.Pod, version api.Version) bool {
	t.Helper()
	return len(complaints(t, pod, version)) == 0
}

var newEvaluator = sync.OnceValues(func() (psa.Evaluator, error) { return psa.NewEvaluator(psa.DefaultChecks(), nil) })

func complaints(t *testing.T, pod *corev1.Pod, version api.Version) []string {
	t.Helper()
	evaluator, err := newEvaluator()
	if err != nil {
		t.Fatal(err)
	}
	result := psa.AggregateCheckResults(evaluator.EvaluatePod(
		api.LevelVersion{Level: api.LevelRestricted, Version: version}, &pod.ObjectMeta, &pod.Spec))
	return result.ForbiddenReasons
}

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

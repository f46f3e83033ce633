package inject

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var quantityKeys = map[string]func(*corev1.ResourceRequirements) string{
	v1alpha1.SidecarCPURequestAnnotation:    func(r *corev1.ResourceRequirements) string { return r.Requests.Cpu().String() },
	v1alpha1.SidecarCPULimitAnnotation:      func(r *corev1.ResourceRequirements) string { return r.Limits.Cpu().String() },
	v1alpha1.SidecarMemoryRequestAnnotation: func(r *corev1.ResourceRequirements) string { return r.Requests.Memory().String() },
	v1alpha1.SidecarMemoryLimitAnnotation:   func(r *corev1.ResourceRequirements) string { return r.Limits.Memory().String() },
}

func TestQuantitiesThatAreUsed(t *testing.T) {
	for value, want := range map[string]string{
		"1": "1", "0.5": "500m", ".5": "500m", "5.": "5.", "100m": "100m", "250000u": "250m", "500000000n": "500m",
		"64Mi": "64Mi", "1.5Gi": "1536Mi", "64M": "64M", "100k": "100k", "512Ki": "512Ki", "1E": "1E", "1Ei": "1Ei",
		"0.123456789": "123456789n", "000000000001": "000000000001",
	} {
		for key, read := range quantityKeys {
			resources, warnings := tuned(map[string]string{key: value})
			if got := read(resources); got != want || len(warnings) > 0 {
				t.Errorf("%s %q has the sidecar ask for %s with warnings %q, want %s without", key, value, got, warnings, want)
			}
		}
	}
}

// TestQuantitiesThatAreNotRead: each of them is a number that ParseQuantity, or a comparison of
// what it returns, takes seconds to compute, or hours.
func TestQuantitiesThatAreNotRead(t *testing.T) {
	for _, value := range []string{
		"1e9999999", "1e-9999999", "1e2147483647", "1e-2147483648", "1E99999999", "1e3", "1E+3", "+1e3", ".5e-9999999",
		"+1", "1e", strings.Repeat("9", 200<<10), "1." + strings.Repeat("0", 200<<10), "1234567890123", "0.1234567891", " 1", "1 ", "1K", "1mi",
	} {
		for key, read := range quantityKeys {
			resources, warnings := tuned(map[string]string{key: value})
			defaults, _ := tuned(nil)
			if got, want := read(resources), read(defaults); got != want {
				t.Errorf("%s %.20q has the sidecar ask for %s, want the default %s", key, value, got, want)
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0], key+" is ") || !strings.Contains(warnings[0], "; the default is used") || len(warnings[0]) > 400 {
				t.Errorf("%s %.20q: warnings %.500q, want a short one that names the annotation and the cure", key, value, warnings)
			}
		}
	}
}

func tuned(annotations map[string]string) (*corev1.ResourceRequirements, []string) {
	pod := &corev1.Pod{}
	pod.Annotations = annotations
	cfg := testConfig
	cfg.Capture = CaptureExplicit // for which nothing of this pod is to be warned of
	out, report := Inject(pod, optedInNamespace, cfg)
	return &out.Spec.InitContainers[0].Resources, report.Warnings
}

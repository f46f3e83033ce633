package inject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestUnknownKeysAreNamed: a misspelt key would otherwise do nothing and nobody would
// learn why.
func TestUnknownKeysAreNamed(t *testing.T) {
	const known = "known are weir.dev/inject and weir.dev/mode of pods, and with config.weir.dev/ " +
		"capture, native-sidecar, inbound-ports, skip-inbound-ports, shutdown-grace-period, underscores, check-socket, " +
		"sidecar-cpu-request, sidecar-cpu-limit, sidecar-memory-request, sidecar-memory-limit"
	type values = map[string]string
	tests := map[string]struct {
		annotations, labels, namespace values
		want                           []string
	}{
		"all that are known": {
			annotations: values{"weir.dev/inject": "enabled", "weir.dev/mode": "shadow", "config.weir.dev/capture": "port", "status.weir.dev/injected": "{}"},
			labels:      values{"weir.dev/inject": "enabled", "weir.dev/enforcer": "true"},
			namespace:   values{"config.weir.dev/capture": "port"},
		},
		"keys of others": {
			annotations: values{"config.example.com/nope": "1", "weir.device/mode": "1", "mode": "1"},
			labels:      values{"app": "1"},
			namespace:   values{"example.com/mode": "shadow"},
		},
		"a letter is missing": {
			annotations: values{"weir.dev/mod": "shadow"},
			labels:      values{"weir.dev/injct": "enabled"},
			namespace:   values{"config.weir.dev/inbound-port": "80"},
			want: []string{
				"annotation weir.dev/mod is not known: did you mean the annotation weir.dev/mode?",
				"label weir.dev/injct is not known: did you mean the label weir.dev/inject?",
				"annotation config.weir.dev/inbound-port of the namespace is not known: did you mean the annotation config.weir.dev/inbound-ports?",
			},
		},
		"the prefix of another key": {
			annotations: values{"config.weir.dev/mode": "bypass", "weir.dev/capture": "port"},
			want: []string{
				"annotation config.weir.dev/mode is not known: did you mean the annotation weir.dev/mode?",
				"annotation weir.dev/capture is not known: did you mean the annotation config.weir.dev/capture?",
			},
		},
		"the prefix of another key, and a letter": {
			annotations: values{"config.weir.dev/mod": "bypass"},
			want:        []string{"annotation config.weir.dev/mod is not known: did you mean the annotation weir.dev/mode?"},
		},
		"an annotation as label": {
			labels: values{"weir.dev/mode": "bypass"},
			want:   []string{"label weir.dev/mode is not known: did you mean the annotation weir.dev/mode?"},
		},
		"the namespace's label on the pod": {
			annotations: values{"weir.dev/injection": "enabled"},
			want:        []string{"annotation weir.dev/injection is not known: did you mean the annotation weir.dev/inject?"},
		},
		"a key of pods on the namespace": {
			namespace: values{"weir.dev/mode": "shadow"},
			want:      []string{"annotation weir.dev/mode of the namespace is not known: " + known},
		},
		"nothing like it is known": {
			annotations: values{"weir.dev/nope": "1"},
			want:        []string{"annotation weir.dev/nope is not known: " + known},
		},
		"several, by name": {
			annotations: values{"weir.dev/mode2": "1", "weir.dev/1mode": "1"},
			want: []string{
				"annotation weir.dev/1mode is not known: did you mean the annotation weir.dev/mode?",
				"annotation weir.dev/mode2 is not known: did you mean the annotation weir.dev/mode?",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := &annotated{pod: tc.annotations, namespace: tc.namespace}
			a.warnOfUnknown(tc.labels)
			if diff := cmp.Diff(tc.want, a.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownKeysAreReportedAndInjectedAllTheSame(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}},
	}}}
	pod.Labels = map[string]string{"weir.dev/mode": "bypass"}
	_, report := Inject(pod, optedInNamespace, testConfig)
	if !report.Injected || len(report.Warnings) != 1 {
		t.Errorf("got %+v, want it injected with a warning", report)
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "mode", 4},
		{"mode", "", 4},
		{"mode", "mode", 0},
		{"mdoe", "mode", 2},
		{"kitten", "sitting", 3},
		{"injection", "inject", 3},
		{"flaw", "lawn", 2},
	} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("%q to %q is %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

package selection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestPastSidecar(t *testing.T) {
	with := func(p corev1.ContainerPort) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{p}}}}
	}
	const front = `"ports":[{"name":"http","listen":15006,"app":8080}]}`
	for name, tc := range map[string]struct {
		injected string
		spec     corev1.PodSpec
		want     int32
	}{
		"to a port of the sidecar":      {`{"capture":"port",` + front, with(corev1.ContainerPort{ContainerPort: 8080, HostPort: 80}), 80},
		"to another port":               {`{"capture":"port",` + front, with(corev1.ContainerPort{ContainerPort: 9090, HostPort: 80}), 0},
		"of UDP":                        {`{"capture":"port",` + front, with(corev1.ContainerPort{ContainerPort: 8080, HostPort: 80, Protocol: corev1.ProtocolUDP}), 0},
		"no host port":                  {`{"capture":"port",` + front, with(corev1.ContainerPort{ContainerPort: 8080}), 0},
		"connections are redirected":    {`{"capture":"redirect",` + front, with(corev1.ContainerPort{ContainerPort: 8080, HostPort: 80}), 0},
		"a pod that is not injected":    {``, with(corev1.ContainerPort{ContainerPort: 8080, HostPort: 80}), 0},
		"an annotation of another kind": {`yes`, with(corev1.ContainerPort{ContainerPort: 8080, HostPort: 80}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.InjectedAnnotation: tc.injected}}, Spec: tc.spec}
			if got := PastSidecar(pod); got != tc.want {
				t.Errorf("PastSidecar = %d, want %d", got, tc.want)
			}
		})
	}
}

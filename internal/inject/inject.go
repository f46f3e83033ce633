package inject

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	snapshotEnv      = "WEIR_SNAPSHOT"
	defaultContainer = "kubectl.kubernetes.io/default-container"
)

// NamespaceFacts is what Inject needs to know of a pod's namespace.
type NamespaceFacts struct {
	Labels, Annotations map[string]string
}

// Config is what the injector puts into every pod.
type Config struct {
	Version         string // of Weir, recorded on the pod
	Image           string // of the sidecar
	FleetAddress    string // host:port where the leading controller serves sidecars
	FleetServerName string // that its certificate must carry
	CABundle        string // PEM of the authority that signed it

	// Snapshot is the value of WEIR_SNAPSHOT for this pod: what the sidecar
	// enforces until it hears from the controller. Empty: nothing.
	Snapshot string
}

// Inject returns a copy of the pod with the sidecar in it and says what it did.
// When the report says that nothing was injected the copy equals the pod.
func Inject(pod *corev1.Pod, ns NamespaceFacts, cfg Config) (*corev1.Pod, Report) {
	out := pod.DeepCopy()
	reason, message := optedIn(pod, ns)
	if reason == Injected {
		reason, message = injectable(pod)
	}
	if reason != Injected {
		return out, Report{Reason: reason, Message: message}
	}

	a := &annotated{pod: pod.Annotations, namespace: ns.Annotations}
	a.warnOfUnknown()
	t := a.tuning()
	var ports []Port
	if t.capture == CapturePort {
		ports = choosePorts(&out.Spec, a)
		warnOfBypass(&out.Spec, ports, a)
	}
	ports, admin := assign(&out.Spec, ports)
	takeNames(&out.Spec, ports)

	volume := volumeName(&out.Spec)
	container := sidecar(&out.Spec, cfg, t, ports, admin, volume)
	out.Spec.InitContainers = append(out.Spec.InitContainers, container)
	out.Spec.Volumes = append(out.Spec.Volumes, tokenVolume(volume))

	report := Report{Injected: true, Reason: Injected, Capture: CapturePort, Ports: ports, Warnings: a.warnings}
	if len(ports) == 0 {
		report.Capture = CaptureExplicit
	}
	report.Message = sentence(report)
	mark(out, status{Version: cfg.Version, Capture: report.Capture, Ports: ports, Hash: hash(container)})
	return out, report
}

// status is the JSON of the annotation on an injected pod.
type status struct {
	Version string  `json:"version"`
	Capture Capture `json:"capture"`
	Ports   []Port  `json:"ports,omitempty"`
	Hash    string  `json:"hash"` // of the sidecar, but for its snapshot
}

func mark(pod *corev1.Pod, s status) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Labels[v1alpha1.EnforcerLabel] = "true"
	pod.Annotations[v1alpha1.InjectedAnnotation] = string(mustMarshal(s))
	if len(pod.Spec.Containers) > 0 {
		pod.Annotations[defaultContainer] = cmp.Or(pod.Annotations[defaultContainer], pod.Spec.Containers[0].Name)
	}
}

// hash tells sidecars of one rendering from those of another. The snapshot is
// left out: it changes with every policy and the sidecar follows without a restart.
func hash(c corev1.Container) string {
	c = *c.DeepCopy()
	for i := range c.Env {
		if c.Env[i].Name == snapshotEnv {
			c.Env[i].Value = ""
		}
	}
	sum := sha256.Sum256(mustMarshal(c))
	return hex.EncodeToString(sum[:8])
}

// mustMarshal is for values that always have a JSON form.
func mustMarshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("inject: marshal %T: %v", v, err))
	}
	return data
}

func sentence(r Report) string {
	if r.Capture == CaptureExplicit {
		return "the sidecar answers the app's questions and stands in front of no port"
	}
	var fronts []string
	for _, p := range r.Ports {
		fronts = append(fronts, fmt.Sprintf("%s (%d)", p.Name, p.App))
	}
	return "the sidecar stands in front of " + strings.Join(fronts, ", ")
}

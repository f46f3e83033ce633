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
	Version string // of Weir, recorded on the pod
	Image   string // of the sidecar

	// ImagePullPolicy is how nodes pull it. Empty: Kubernetes chooses by the tag.
	ImagePullPolicy corev1.PullPolicy

	// ImagePullSecrets are names of Secrets that pods are given beside their own to pull
	// it with. One that a pod's namespace lacks does no harm.
	ImagePullSecrets []string

	FleetAddress    string // host:port where the leading controller serves sidecars
	FleetServerName string // that its certificate must carry
	CABundle        string // PEM of the authority that signed it

	// Capture is for the pods that choose none, nor their namespace. Empty: CaptureAuto.
	Capture Capture

	// Resources are those of sidecars in pods that choose none. The zero value means
	// DefaultResources.
	Resources corev1.ResourceRequirements

	// TraceCollector is host:port of an OpenTelemetry collector that sidecars send
	// traces to. Empty: they trace nothing.
	TraceCollector string

	// KubernetesMinor is the minor version of the API server, 34 for 1.34. It decides
	// on the form of the sidecar.
	KubernetesMinor int

	// Snapshot is the value of WEIR_SNAPSHOT for this pod: what the sidecar
	// enforces until it hears from the controller. Empty: nothing.
	Snapshot string

	// ProbeToken is a part of the path that the kubelet asks this pod's sidecar at, for
	// nobody else to guess. Text of 128 random bits that is fit for a path. Without it
	// a sidecar that has probes to make does not start.
	ProbeToken string
}

// OptedIn returns a report with the reason Injected when a sidecar is wanted in the pod, and
// one that says why it is not otherwise. It reads annotations and labels of the pod alone.
func OptedIn(pod *corev1.Pod, ns NamespaceFacts) Report {
	reason, message := optedIn(pod, ns)
	return Report{Reason: reason, Message: message}
}

// Inject returns a copy of the pod with the sidecar in it and says what it did.
// When the report says that nothing was injected the copy equals the pod. With the reason
// TooLarge the pod must not be created: it opted in and would not be limited.
//
// The work is linear in the size of the pod.
func Inject(pod *corev1.Pod, ns NamespaceFacts, cfg Config) (*corev1.Pod, Report) {
	out := pod.DeepCopy()
	reason, message := optedIn(pod, ns)
	if reason == Injected {
		reason, message = injectable(pod, ns, cfg)
	}
	if reason != Injected {
		return out, Report{Reason: reason, Message: message}
	}
	a := &annotated{pod: pod.Annotations, namespace: ns.Annotations}
	p := newPlan(pod, ns, cfg, a)
	if p.form == Classic && finishes(pod) {
		return out, Report{Reason: RunsToCompletion, Message: completionMessage, Warnings: a.report()}
	}
	p.apply(&out.Spec)
	report := Report{Injected: true, Reason: Injected, Capture: p.capture, Form: p.form, Ports: p.ports, Warnings: a.report()}
	report.Message = sentence(report)
	mark(out, pod, status{Version: cfg.Version, Capture: p.capture, Form: p.form, Ports: p.ports, Hash: p.hash()})
	return out, report
}

const completionMessage = "the pod is to finish, from which a sidecar in the classic form would keep it: run it on Kubernetes 1.29 or newer," +
	" and set " + v1alpha1.NativeSidecarAnnotation + " to auto"

// status is the JSON of the annotation on an injected pod.
type status struct {
	Version string  `json:"version"`
	Capture Capture `json:"capture"`
	Form    Form    `json:"form"`
	Ports   []Port  `json:"ports,omitempty"`
	Hash    string  `json:"hash"` // of our containers, but for the snapshot and the token
}

// mark writes on the injected pod what it is. The pod as it was knows the app's
// first container.
func mark(out, pod *corev1.Pod, s status) {
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Labels[v1alpha1.EnforcerLabel] = "true"
	out.Annotations[v1alpha1.InjectedAnnotation] = string(mustMarshal(s))
	if len(pod.Spec.Containers) > 0 {
		out.Annotations[defaultContainer] = cmp.Or(out.Annotations[defaultContainer], pod.Spec.Containers[0].Name)
	}
}

// hash distinguishes sidecars of one rendering from those of another. The snapshot is
// left out: it changes with every policy and the sidecar follows without a restart.
// So is the token, which every pod has its own of.
func (p *plan) hash() string {
	without := *p
	without.cfg.Snapshot, without.cfg.ProbeToken = "", ""
	sum := sha256.Sum256(mustMarshal(append(without.initContainers(), without.sidecar())))
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
	var fronts []string
	for _, p := range r.Ports {
		if p.Name == "" {
			fronts = append(fronts, fmt.Sprint(p.App))
		} else {
			fronts = append(fronts, fmt.Sprintf("%s (%d)", p.Name, p.App))
		}
	}
	switch r.Capture {
	case CaptureRedirect:
		return "the sidecar gets all connections to " + strings.Join(fronts, ", ")
	case CapturePort:
		return "the sidecar stands in front of " + strings.Join(fronts, ", ")
	default:
		return "the sidecar answers the app's questions and stands in front of no port"
	}
}

package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// maxSnapshot is the longest snapshot that a pod carries, in bytes of its packed
// form. Linux refuses environment variables of 128 KiB and more.
const maxSnapshot = 64 << 10

// readTimeout bounds one read of a namespace. The informer of a replica that has
// just started blocks; the API server must then still be asked in time.
const readTimeout = time.Second

// Snapshots knows what a pod that does not exist yet will have to enforce. With a
// *translate.PartialError it returns all that can be enforced.
type Snapshots interface {
	Snapshot(ctx context.Context, namespace string, podLabels map[string]string) (policy.Snapshot, error)
}

// PodInjector is the admission handler that injects pods. All fields are needed.
type PodInjector struct {
	// Namespaces reads Namespace objects from an informer. It may be behind the API
	// server, so when it shows a namespace that does not want injection, or none,
	// LiveNamespaces is asked: the API server has called because its own state of the
	// namespace, or the pod, does want it.
	Namespaces, LiveNamespaces client.Reader

	Snapshots Snapshots
	Events    Events
	CABundle  func() []byte // PEM of the authority that sidecars shall trust

	// Config is what every sidecar gets; CABundle, Snapshot and ProbeToken are set per pod.
	Config inject.Config
}

var _ admission.Handler = (*PodInjector)(nil)

// Handle answers one request for the creation of a pod, whose JSON has been weighed.
func (i *PodInjector) Handle(ctx context.Context, req admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the pod: %s", shorten(err.Error())))
	}
	cfg := i.Config
	cfg.CABundle, cfg.ProbeToken = string(i.CABundle()), rand.Text()
	snapshot, snapshotErr := i.snapshot(ctx, req.Namespace, pod)
	cfg.Snapshot = snapshot

	var out *corev1.Pod
	report, err := i.ask(ctx, req.Namespace, func(facts inject.NamespaceFacts) (report inject.Report) {
		out, report = inject.Inject(pod, facts, cfg)
		return report
	})
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case report.Reason == inject.TooLarge:
		return admission.Denied(report.Message)
	}
	if report.Injected && snapshotErr != nil {
		report.Warnings = append(report.Warnings, lacking(snapshotErr))
	}
	if req.DryRun == nil || !*req.DryRun {
		i.emit(pod, req.Namespace, report)
	}
	return response(pod, out, report)
}

// refuse answers for a pod that is not decoded because of excess. One that did not opt in is
// created; any other would start without a sidecar, and is not.
func (i *PodInjector) refuse(excess error) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		refused := admission.Denied(fmt.Sprintf("the pod opted in to Weir and is beyond a bound: %v", excess))
		var known metav1.PartialObjectMetadata
		if _, err := weigh(req.Object.Raw, metadataShape, maxObjectMemory); err != nil {
			return refused
		}
		if err := json.Unmarshal(req.Object.Raw, &known); err != nil {
			return refused
		}
		report, err := i.ask(ctx, req.Namespace, func(facts inject.NamespaceFacts) inject.Report {
			return inject.OptedIn(&corev1.Pod{ObjectMeta: known.ObjectMeta}, facts)
		})
		switch {
		case err != nil:
			return admission.Errored(http.StatusInternalServerError, err)
		case report.Reason == inject.Injected:
			return refused
		}
		return admission.Allowed(report.Message).WithWarnings(warnings(report)...)
	})
}

var metadataShape = shapeOf[metav1.PartialObjectMetadata]()

// ask decides by what the informer knows of the namespace, and by what the API server does
// when that does not settle it.
func (i *PodInjector) ask(ctx context.Context, namespace string, decide func(inject.NamespaceFacts) inject.Report) (report inject.Report, err error) {
	for _, reader := range []client.Reader{i.Namespaces, i.LiveNamespaces} {
		var facts inject.NamespaceFacts
		if facts, err = namespaceFacts(ctx, reader, namespace); err != nil {
			continue
		}
		report = decide(facts)
		if report.Reason != inject.NotOptedIn && report.Reason != inject.DisabledByNamespace {
			break
		}
	}
	return report, err
}

func namespaceFacts(ctx context.Context, reader client.Reader, name string) (inject.NamespaceFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	ns := &corev1.Namespace{}
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, ns); err != nil {
		return inject.NamespaceFacts{}, fmt.Errorf("read the pod's namespace: %w", err)
	}
	return inject.NamespaceFacts{Labels: ns.Labels, Annotations: ns.Annotations}, nil
}

// snapshot packs what the pod enforces until it hears from the controller. A new pod has
// nothing that a part of its policies could lift, so it gets the part where that is all
// there is, with a *translate.PartialError.
func (i *PodInjector) snapshot(ctx context.Context, namespace string, pod *corev1.Pod) (string, error) {
	s, err := i.Snapshots.Snapshot(ctx, namespace, pod.Labels)
	if err != nil && !isPartial(err) {
		return "", err
	}
	packed, failed := pack(s)
	if failed != nil {
		return "", failed
	}
	return packed, err
}

func isPartial(err error) bool {
	_, ok := errors.AsType[*translate.PartialError](err)
	return ok
}

// lacking says what a pod starts without.
func lacking(err error) string {
	if isPartial(err) {
		return fmt.Sprintf("the pod starts without what cannot be enforced and gets it from the controller once that is repaired: %v", err)
	}
	return fmt.Sprintf("the pod starts without policies and gets them from the controller: %v", err)
}

func pack(s policy.Snapshot) (string, error) {
	data, _, err := policy.Encode(s)
	if err != nil {
		return "", err
	}
	packed, err := policy.Pack(data)
	if err == nil && len(packed) > maxSnapshot {
		return "", fmt.Errorf("they are %d bytes long and a pod carries up to %d", len(packed), maxSnapshot)
	}
	return packed, err
}

// response patches only what injection changed.
func response(pod, out *corev1.Pod, report inject.Report) admission.Response {
	if !report.Injected {
		return admission.Allowed(report.Message).WithWarnings(warnings(report)...)
	}
	return admission.Patched("", patch(pod, out)...).WithWarnings(warnings(report)...)
}

// warnings are what the creator of the pod should hear of at once.
func warnings(report inject.Report) []string {
	var list []string
	if unexpected(report) {
		list = append(list, "weir: no sidecar: "+report.Message)
	}
	for _, w := range report.Warnings {
		list = append(list, "weir: "+w)
	}
	return list
}

// unexpected reports whether the pod was meant to get a sidecar and did not.
func unexpected(report inject.Report) bool {
	switch report.Reason {
	case inject.Injected, inject.AlreadyInjected, inject.NotOptedIn, inject.DisabledByPod, inject.DisabledByNamespace:
		return false
	default:
		return true
	}
}

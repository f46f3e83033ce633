package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const namespace = "shop"

// snapshots answers with a fixed snapshot or error.
type snapshots struct {
	snapshot policy.Snapshot
	err      error
}

func (s snapshots) Snapshot(context.Context, string, map[string]string) (policy.Snapshot, error) {
	return s.snapshot, s.err
}

// recorder keeps Events as lines.
type recorder struct{ lines []string }

func (r *recorder) Eventf(regarding, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	about := regarding.(*corev1.ObjectReference)
	kind, _, _ := strings.Cut(action, "-")
	r.lines = append(r.lines, fmt.Sprintf("%s/%s in %s: %s %s %s: %s",
		about.Kind, about.Name, about.Namespace, eventtype, reason, kind, fmt.Sprintf(note, args...)))
}

func withNamespace(labels map[string]string) client.Reader {
	return fake.NewClientBuilder().WithObjects(&corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels},
	}).Build()
}

func withoutNamespace() client.Reader { return fake.NewClientBuilder().Build() }

var enabled = map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled}

// newInjector serves a namespace that opted in and has one policy.
func newInjector() (*PodInjector, *recorder) {
	events := &recorder{}
	return &PodInjector{
		Namespaces:     withNamespace(enabled),
		LiveNamespaces: withoutNamespace(),
		Snapshots:      snapshots{snapshot: aSnapshot(1)},
		Events:         events,
		CABundle:       func() []byte { return []byte("a CA bundle") },
		Config:         inject.Config{Image: "weir-sidecar:test", Capture: inject.CapturePort, KubernetesMinor: 34},
	}, events
}

func aSnapshot(policies int) policy.Snapshot {
	s := policy.Snapshot{Cluster: "test"}
	random := rand.New(rand.NewPCG(1, 2)) // names that do not compress
	for i := range policies {
		s.Policies = append(s.Policies, policy.Policy{
			Namespace: namespace, Name: fmt.Sprintf("p%06d-%016x%016x%016x%016x", i, random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()),
			Generation: 1, Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
			Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny,
			Limits: []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}},
		})
	}
	return s
}

func aPod(annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "checkout-7d9c-", Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "checkout-7d9c", UID: "1", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}},
		}},
	}
}

func aJobsPod() *corev1.Pod {
	pod := aPod(nil)
	pod.GenerateName, pod.Spec.RestartPolicy = "import-", corev1.RestartPolicyNever
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "import", UID: "2", Controller: new(true)}}
	return pod
}

func besideIstio(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "istio-proxy", Image: "istio"})
	return pod
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func request(raw []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: namespace, Object: runtime.RawExtension{Raw: raw},
	}}
}

// patched applies the response's patch to the object as the API server does.
func patched(t *testing.T, raw []byte, r admission.Response) []byte {
	t.Helper()
	if !r.Allowed {
		t.Fatalf("refused: %v", r.Result)
	}
	if len(r.Patches) == 0 {
		return raw
	}
	patch, err := jsonpatch.DecodePatch(encode(t, r.Patches))
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sidecarOf returns the injected container, or nil.
func sidecarOf(t *testing.T, raw []byte) *corev1.Container {
	t.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatal(err)
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == inject.ContainerName {
			return &pod.Spec.InitContainers[i]
		}
	}
	return nil
}

func env(c *corev1.Container, name string) string {
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	return c.Env[i].Value
}

func TestHandle(t *testing.T) {
	const about = "ReplicaSet/checkout-7d9c in shop: "
	injected := about + "Normal Injected Inject: pod checkout-7d9c: the sidecar stands in front of http (8080)"
	tests := map[string]struct {
		pod          *corev1.Pod
		change       func(*PodInjector)
		wantInjected bool
		wantEvents   []string
		wantWarnings []string
	}{
		"a pod of a namespace that opted in": {
			pod: aPod(nil), wantInjected: true, wantEvents: []string{injected},
		},
		"a pod without an owner": {
			pod:          &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"}, Spec: aPod(nil).Spec},
			wantInjected: true,
			wantEvents:   []string{"Pod/job in shop: Normal Injected Inject: pod job: the sidecar stands in front of http (8080)"},
		},
		"a pod of a Job in a cluster without native sidecars": {
			pod:    aJobsPod(),
			change: func(i *PodInjector) { i.Config.KubernetesMinor = 28 },
			wantEvents: []string{"Job/import in shop: Warning InjectionSkipped Inject: pod import: RunsToCompletion: the pod is to finish, " +
				"from which a sidecar in the classic form would keep it: run it on Kubernetes 1.29 or newer, and set config.weir.dev/native-sidecar to auto"},
			wantWarnings: []string{"weir: no sidecar: the pod is to finish, from which a sidecar in the classic form would keep it: " +
				"run it on Kubernetes 1.29 or newer, and set config.weir.dev/native-sidecar to auto"},
		},
		"redirection that the mesh would make void": {
			pod: besideIstio(aPod(map[string]string{v1alpha1.CaptureAnnotation: "redirect"})), wantInjected: true,
			wantEvents: []string{injected, about + "Warning InjectionWarning Inject: pod checkout-7d9c: config.weir.dev/capture is redirect, which " +
				"cannot work beside istio-proxy: it takes the pod's traffic first and hands it past the sidecar; port is used"},
			wantWarnings: []string{"weir: config.weir.dev/capture is redirect, which cannot work beside istio-proxy: " +
				"it takes the pod's traffic first and hands it past the sidecar; port is used"},
		},
		"a malformed inject value": {
			pod: aPod(map[string]string{v1alpha1.InjectKey: "true"}),
			wantEvents: []string{about + `Warning InjectionSkipped Inject: pod checkout-7d9c: MalformedInject: ` +
				`the pod's annotation weir.dev/inject is "true": use "enabled" or "disabled"`},
			wantWarnings: []string{`weir: no sidecar: the pod's annotation weir.dev/inject is "true": use "enabled" or "disabled"`},
		},
		"a malformed tuning value": {
			pod:          aPod(map[string]string{v1alpha1.ModeAnnotation: "on"}),
			wantInjected: true,
			wantEvents: []string{injected, about + `Warning InjectionWarning Inject: pod checkout-7d9c: ` +
				`weir.dev/mode is "on": use enforce, shadow or bypass; enforce is used`},
			wantWarnings: []string{`weir: weir.dev/mode is "on": use enforce, shadow or bypass; enforce is used`},
		},
		"a pod that opted out": {
			pod: aPod(map[string]string{v1alpha1.InjectKey: v1alpha1.Disabled}),
			wantEvents: []string{about + `Normal InjectionSkipped Inject: pod checkout-7d9c: DisabledByPod: ` +
				`the pod's annotation weir.dev/inject is "disabled"`},
		},
		"a pod that nobody opted in": {
			pod: aPod(nil),
			change: func(i *PodInjector) {
				i.Namespaces, i.LiveNamespaces = withNamespace(nil), withNamespace(nil)
			},
		},
		"the informer does not know the namespace yet": {
			pod: aPod(nil),
			change: func(i *PodInjector) {
				i.Namespaces, i.LiveNamespaces = withoutNamespace(), withNamespace(enabled)
			},
			wantInjected: true, wantEvents: []string{injected},
		},
		"the informer does not know the namespace's label yet": {
			pod: aPod(nil),
			change: func(i *PodInjector) {
				i.Namespaces, i.LiveNamespaces = withNamespace(nil), withNamespace(enabled)
			},
			wantInjected: true, wantEvents: []string{injected},
		},
		"the informer still shows the namespace as opted out": {
			pod: aPod(nil),
			change: func(i *PodInjector) {
				i.Namespaces = withNamespace(map[string]string{v1alpha1.InjectionLabel: v1alpha1.Disabled})
				i.LiveNamespaces = withNamespace(enabled)
			},
			wantInjected: true, wantEvents: []string{injected},
		},
		"the policies cannot be resolved": {
			pod:          aPod(nil),
			change:       func(i *PodInjector) { i.Snapshots = snapshots{err: errors.New("policy x is invalid")} },
			wantInjected: true,
			wantEvents: []string{injected, about + "Warning InjectionWarning Inject: pod checkout-7d9c: " +
				"the pod starts without policies and gets them from the controller: policy x is invalid"},
			wantWarnings: []string{"weir: the pod starts without policies and gets them from the controller: policy x is invalid"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			injector, events := newInjector()
			if tc.change != nil {
				tc.change(injector)
			}
			raw := encode(t, tc.pod)
			response := injector.Handle(t.Context(), request(raw))
			out := patched(t, raw, response)
			if got := sidecarOf(t, out) != nil; got != tc.wantInjected {
				t.Errorf("injected %t, want %t", got, tc.wantInjected)
			}
			if diff := cmp.Diff(tc.wantEvents, events.lines); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Errorf("admission warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandleRefuses(t *testing.T) {
	tests := map[string]struct {
		raw    string
		change func(*PodInjector)
		want   int32
	}{
		"what is not JSON":                   {raw: "{", want: http.StatusBadRequest},
		"what is not a pod":                  {raw: `{"spec":{"containers":"x"}}`, want: http.StatusBadRequest},
		"when nobody knows the namespace":    {raw: "{}", change: func(i *PodInjector) { i.Namespaces = withoutNamespace() }, want: http.StatusInternalServerError},
		"when a stale answer is unsettled":   {raw: "{}", change: func(i *PodInjector) { i.Namespaces = withNamespace(nil) }, want: http.StatusInternalServerError},
		"nothing, even a pod without a name": {raw: "{}", want: http.StatusOK},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			injector, _ := newInjector()
			if tc.change != nil {
				tc.change(injector)
			}
			response := injector.Handle(t.Context(), request([]byte(tc.raw)))
			got := int32(http.StatusOK)
			if !response.Allowed {
				got = response.Result.Code
			}
			if got != tc.want {
				t.Errorf("code %d (%v), want %d", got, response.Result, tc.want)
			}
		})
	}
}

func TestSidecarCarriesTheSnapshot(t *testing.T) {
	injector, _ := newInjector()
	raw := encode(t, aPod(nil))
	requireCarriesTheSnapshot(t, sidecarOf(t, patched(t, raw, injector.Handle(t.Context(), request(raw)))))
}

// TestANewPodIsLimitedByWhatIsNotBroken and its author reads of the rest.
func TestANewPodIsLimitedByWhatIsNotBroken(t *testing.T) {
	injector, events := newInjector()
	injector.Snapshots = snapshots{snapshot: aSnapshot(1), err: fmt.Errorf("resolved: %w", &translate.PartialError{})}
	raw := encode(t, aPod(nil))
	response := injector.Handle(t.Context(), request(raw))
	requireCarriesTheSnapshot(t, sidecarOf(t, patched(t, raw, response)))
	const want = "the pod starts without what cannot be enforced and gets it from the controller once that is repaired: resolved: "
	if len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], want) {
		t.Errorf("warnings %q, want one that says %q", response.Warnings, want)
	}
	if len(events.lines) != 2 || !strings.Contains(events.lines[1], want) {
		t.Errorf("events %q, want a second one that says %q", events.lines, want)
	}
}

// TestASnapshotThatIsUnknownStaysOut: what comes with any other error is not a snapshot.
func TestASnapshotThatIsUnknownStaysOut(t *testing.T) {
	injector, _ := newInjector()
	injector.Snapshots = snapshots{snapshot: aSnapshot(1), err: errors.New("the cache is not synced")}
	raw := encode(t, aPod(nil))
	if got := env(sidecarOf(t, patched(t, raw, injector.Handle(t.Context(), request(raw)))), "WEIR_SNAPSHOT"); got != "" {
		t.Errorf("the pod carries %q", got)
	}
}

func requireCarriesTheSnapshot(t *testing.T, sidecar *corev1.Container) {
	t.Helper()
	data, err := policy.Unpack(env(sidecar, "WEIR_SNAPSHOT"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := policy.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(aSnapshot(1), got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	if got := env(sidecar, "WEIR_CA_BUNDLE"); got != "a CA bundle" {
		t.Errorf("CA bundle %q", got)
	}
}

// TestLargeSnapshotStaysOut: Linux would refuse to start the sidecar.
func TestLargeSnapshotStaysOut(t *testing.T) {
	injector, _ := newInjector()
	injector.Snapshots = snapshots{snapshot: aSnapshot(2500)}
	raw := encode(t, aPod(nil))
	response := injector.Handle(t.Context(), request(raw))
	if got := env(sidecarOf(t, patched(t, raw, response)), "WEIR_SNAPSHOT"); got != "" {
		t.Errorf("the pod carries a snapshot of %d bytes", len(got))
	}
	if len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "bytes long") {
		t.Errorf("warnings %q, want one that gives the size", response.Warnings)
	}
}

func TestDryRunLeavesNoTrace(t *testing.T) {
	injector, events := newInjector()
	raw := encode(t, aPod(map[string]string{v1alpha1.ModeAnnotation: "on"}))
	req := request(raw)
	req.DryRun = new(true)
	response := injector.Handle(t.Context(), req)
	if sidecarOf(t, patched(t, raw, response)) == nil {
		t.Error("a dry run does not show what would happen")
	}
	if len(events.lines) != 0 {
		t.Errorf("a dry run wrote events: %q", events.lines)
	}
}

func TestReinvocationIsSilent(t *testing.T) {
	injector, events := newInjector()
	raw := encode(t, aPod(nil))
	once := patched(t, raw, injector.Handle(t.Context(), request(raw)))
	events.lines = nil
	response := injector.Handle(t.Context(), request(once))
	if len(response.Patches) != 0 || len(response.Warnings) != 0 || len(events.lines) != 0 {
		t.Errorf("the second call: patches %v, warnings %v, events %v", response.Patches, response.Warnings, events.lines)
	}
}

// TestAPodThatClaimsToBeInjectedIsSpokenOf, since nothing limits it.
func TestAPodThatClaimsToBeInjectedIsSpokenOf(t *testing.T) {
	injector, events := newInjector()
	pod := aPod(map[string]string{v1alpha1.InjectedAnnotation: "{}"})
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: inject.ContainerName, Image: "pause"})
	response := injector.Handle(t.Context(), request(encode(t, pod)))
	if !response.Allowed || len(response.Patches) != 0 {
		t.Errorf("response %+v, want the pod as it is", response)
	}
	if len(response.Warnings) != 1 || !strings.HasPrefix(response.Warnings[0], "weir: no sidecar: the pod claims to be injected") {
		t.Errorf("warnings %q, want one that there is no sidecar", response.Warnings)
	}
	if len(events.lines) != 1 || !strings.Contains(events.lines[0], "Warning InjectionSkipped Inject: pod checkout-7d9c: ForeignSidecar: the pod claims to be injected") {
		t.Errorf("events %q, want one that nothing was injected", events.lines)
	}
}

// TestEveryPodHasItsOwnToken, the one by which the kubelet asks its sidecar, and keeps
// it when it is admitted once more.
func TestEveryPodHasItsOwnToken(t *testing.T) {
	injector, _ := newInjector()
	injector.Config.Capture = inject.CaptureRedirect
	pod := aPod(nil)
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}
	raw := encode(t, pod)
	tokens := map[string]bool{}
	for range 3 {
		once := patched(t, raw, injector.Handle(t.Context(), request(raw)))
		token := env(sidecarOf(t, once), "WEIR_PROBE_TOKEN")
		if len(token) < 26 { // of 32 signs each, for 128 bits
			t.Errorf("token %q can be guessed", token)
		}
		tokens[token] = true
		if path := `"/probe/` + token + `/app/liveness"`; !strings.Contains(string(once), path) {
			t.Errorf("the kubelet does not ask at %s: %s", path, once)
		}
		if again := injector.Handle(t.Context(), request(once)); len(again.Patches) != 0 {
			t.Errorf("the second call: patches %v", again.Patches)
		}
	}
	if len(tokens) != 3 {
		t.Errorf("3 pods have %d tokens", len(tokens))
	}
}

// TestFieldsOfNewerKubernetesSurvive: a field that these types do not know must
// not be taken out of the pod.
func TestFieldsOfNewerKubernetesSurvive(t *testing.T) {
	raw := []byte(`{"metadata":{"name":"a","future":1},"spec":{"future":{"a":[1,2]},"containers":[` +
		`{"name":"app","future":true,"ports":[{"name":"http","containerPort":8080,"future":"x"}]}]}}`)
	injector, _ := newInjector()
	out := patched(t, raw, injector.Handle(t.Context(), request(raw)))
	if sidecarOf(t, out) == nil {
		t.Fatal("not injected")
	}
	if n := strings.Count(string(out), `"future"`); n != 4 {
		t.Errorf("%d of 4 unknown fields are left in %s", n, out)
	}
	if !strings.Contains(string(out), `"http-app"`) {
		t.Error("the app's port was not renamed")
	}
}

func BenchmarkHandle(b *testing.B) {
	injector, _ := newInjector()
	raw, err := json.Marshal(aPod(nil))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		injector.Handle(b.Context(), request(raw))
	}
}

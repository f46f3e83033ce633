package inject

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	psa "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// minGolden keeps the collection from shrinking unseen.
const minGolden = 60

var testConfig = Config{
	Version:         "v0.0.0-test",
	Image:           "registry.example/weir-sidecar@sha256:0000",
	FleetAddress:    "weir-fleet.weir-system.svc:15030",
	FleetServerName: "weir-fleet.weir-system.svc",
	CABundle:        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
	Snapshot:        "H4sI",
}

// TestGolden injects every testdata/*.in.yaml and compares report and pod with
// the *.out.yaml beside it. An output whose input is gone is an error.
func TestGolden(t *testing.T) {
	inputs := goldenInputs(t)
	if len(inputs) < minGolden {
		t.Errorf("%d golden files, want at least %d", len(inputs), minGolden)
	}
	var want []string
	for _, input := range inputs {
		output := strings.TrimSuffix(input, ".in.yaml") + ".out.yaml"
		want = append(want, output)
		t.Run(filepath.Base(strings.TrimSuffix(input, ".in.yaml")), func(t *testing.T) {
			ns, pod := readInput(t, input)
			out, report := Inject(pod, ns, testConfig)
			compareGolden(t, output, render(t, pod, out, report))
		})
	}
	outputs, err := filepath.Glob("testdata/*.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		if slices.Contains(want, output) {
			continue
		}
		if !*update {
			t.Errorf("%s is stale: its input is gone; remove it with -update", output)
		} else if err := os.Remove(output); err != nil {
			t.Error(err)
		}
	}
}

// TestProperties holds every golden input to what must be true of any pod.
func TestProperties(t *testing.T) {
	restricted := 0
	for _, input := range goldenInputs(t) {
		t.Run(filepath.Base(strings.TrimSuffix(input, ".in.yaml")), func(t *testing.T) {
			ns, pod := readInput(t, input)
			requireProperties(t, pod, ns)
			harden(&pod.Spec)
			requireProperties(t, pod, ns)
			if _, report := Inject(pod, ns, testConfig); report.Injected && admitted(t, pod, api.LatestVersion()) {
				restricted++
			}
		})
	}
	if restricted < 40 {
		t.Errorf("only %d of the inputs are injected and restricted, so the profile is hardly tested", restricted)
	}
}

func goldenInputs(t *testing.T) []string {
	t.Helper()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return inputs
}

func readInput(t *testing.T, path string) (NamespaceFacts, *corev1.Pod) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, second, found := bytes.Cut(data, []byte("\n---\n"))
	if !found {
		t.Fatalf("%s: want a Namespace, a line of ---, and a Pod", path)
	}
	var ns corev1.Namespace
	if err := yaml.UnmarshalStrict(first, &ns); err != nil {
		t.Fatalf("%s: namespace: %v", path, err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(second, pod); err != nil {
		t.Fatalf("%s: pod: %v", path, err)
	}
	return NamespaceFacts{Labels: ns.Labels, Annotations: ns.Annotations}, pod
}

// render writes the report, and the pod when it is no longer the input.
func render(t *testing.T, in, out *corev1.Pod, report Report) string {
	t.Helper()
	text := asYAML(t, report)
	if asYAML(t, in) != asYAML(t, out) {
		text += "---\n" + asYAML(t, out)
	}
	return text
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if that is right, write it with -update:\n%s", path, diff)
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// requireProperties holds one pod to what must be true of any.
func requireProperties(t *testing.T, pod *corev1.Pod, ns NamespaceFacts) {
	t.Helper()
	before := asYAML(t, pod)
	once, report := Inject(pod, ns, testConfig)
	if diff := cmp.Diff(before, asYAML(t, pod)); diff != "" {
		t.Fatalf("the input changed:\n%s", diff)
	}
	requireIdempotent(t, once, ns, report)
	if !report.Injected {
		if diff := cmp.Diff(before, asYAML(t, once)); diff != "" {
			t.Errorf("a pod that was not injected changed:\n%s", diff)
		}
		return
	}
	requireOurs(t, pod, once)
	requireCaptured(t, once, report)
	requireValid(t, once)
	for _, version := range profileVersions() {
		if admitted(t, pod, version) && !admitted(t, once, version) {
			t.Errorf("restricted %s admits the pod and refuses it once it is injected: %v", version.String(), complaints(t, once, version))
		}
	}
}

func requireIdempotent(t *testing.T, once *corev1.Pod, ns NamespaceFacts, first Report) {
	t.Helper()
	again := once
	for _, time := range []string{"second", "third"} {
		var report Report
		again, report = Inject(again, ns, testConfig)
		if diff := cmp.Diff(asYAML(t, once), asYAML(t, again)); diff != "" {
			t.Errorf("the %s application changed the pod:\n%s", time, diff)
		}
		want := first
		if first.Injected {
			want = Report{Reason: AlreadyInjected, Message: report.Message}
		}
		if diff := cmp.Diff(want, report); diff != "" {
			t.Errorf("the report of the %s application (-want +got):\n%s", time, diff)
		}
	}
}

// requireOurs checks that nothing of the pod's author came into the sidecar.
func requireOurs(t *testing.T, pod, out *corev1.Pod) {
	t.Helper()
	c := &out.Spec.InitContainers[len(out.Spec.InitContainers)-1]
	if c.Name != ContainerName || c.Image != testConfig.Image || c.Command != nil || !isNativeSidecar(c) {
		t.Errorf("the last init container is %s with image %s and command %q, want our native sidecar", c.Name, c.Image, c.Command)
	}
	if diff := cmp.Diff(securityContext(), c.SecurityContext); diff != "" {
		t.Errorf("security context (-want +got):\n%s", diff)
	}
	if got, want := len(out.Spec.Volumes), len(pod.Spec.Volumes)+1; got != want {
		t.Fatalf("%d volumes, want %d", got, want)
	}
	volume := out.Spec.Volumes[len(out.Spec.Volumes)-1]
	if diff := cmp.Diff(tokenVolume(volume.Name), volume); diff != "" {
		t.Errorf("volume (-want +got):\n%s", diff)
	}
	for other := range containers(&out.Spec) {
		for _, mount := range other.VolumeMounts {
			if (other.Name == ContainerName) != (mount.Name == volume.Name) {
				t.Errorf("container %s mounts volume %s: the token is the sidecar's and the sidecar's alone", other.Name, mount.Name)
			}
		}
	}
}

// requireCaptured checks that the port names lead to the sidecar and that no
// probe goes there.
func requireCaptured(t *testing.T, out *corev1.Pod, report Report) {
	t.Helper()
	listeners := map[int32]bool{checkPort: true}
	for _, p := range report.Ports {
		if got := targetPort(out, p.Name); got != p.Listen {
			t.Errorf("a Service that targets %s reaches port %d, want the sidecar's %d", p.Name, got, p.Listen)
		}
		if listeners[p.Listen] {
			t.Errorf("port %d has two listeners", p.Listen)
		}
		listeners[p.Listen] = true
	}
	for c := range serving(&out.Spec) {
		if c.Name == ContainerName {
			continue
		}
		for _, p := range c.Ports {
			if listeners[p.ContainerPort] && isTCP(&p) {
				t.Errorf("container %s and the sidecar both listen on %d", c.Name, p.ContainerPort)
			}
		}
		requireProbesResolve(t, c)
	}
}

// targetPort looks a name up as the endpoints controller does.
func targetPort(pod *corev1.Pod, name string) int32 {
	lists := [][]corev1.Container{pod.Spec.Containers}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			lists = append(lists, []corev1.Container{c})
		}
	}
	for _, c := range slices.Concat(lists...) {
		for _, p := range c.Ports {
			if p.Name == name && p.Protocol != corev1.ProtocolUDP {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// requireProbesResolve checks that every port that a probe names is declared.
func requireProbesResolve(t *testing.T, c *corev1.Container) {
	t.Helper()
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.StrVal == "" {
			continue
		}
		name := probe.HTTPGet.Port.StrVal
		if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name }) {
			t.Errorf("a probe of container %s names port %s, which is gone", c.Name, name)
		}
	}
}

// requireValid checks what the API server would refuse.
func requireValid(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	names := map[string]bool{}
	for c := range containers(&pod.Spec) {
		if names[c.Name] {
			t.Errorf("two containers are named %s", c.Name)
		}
		names[c.Name] = true
		ports := map[string]bool{}
		for _, p := range c.Ports {
			if p.Name != "" && (ports[p.Name] || len(p.Name) > maxPortName) {
				t.Errorf("container %s: port name %q is too long or there twice", c.Name, p.Name)
			}
			ports[p.Name] = true
		}
		for resource, limit := range c.Resources.Limits {
			if request := c.Resources.Requests[resource]; request.Cmp(limit) > 0 {
				t.Errorf("container %s requests %s of %s and is limited to %s", c.Name, request.String(), resource, limit.String())
			}
		}
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		if volumes[v.Name] {
			t.Errorf("two volumes are named %s", v.Name)
		}
		volumes[v.Name] = true
	}
	if pod.Labels[v1alpha1.EnforcerLabel] != "true" {
		t.Error("the pod is not marked as an enforcer")
	}
}

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

func profileVersions() []api.Version {
	versions := []api.Version{api.LatestVersion()}
	for minor := 29; minor <= 37; minor++ {
		versions = append(versions, api.MajorMinorVersion(1, minor))
	}
	return versions
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

package inject

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
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
	"github.com/weir-dev/weir/internal/sidecar/probe"
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
	KubernetesMinor: 34,
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
			in := readInput(t, input)
			out, report := Inject(in.pod, in.namespace, in.config)
			compareGolden(t, output, render(t, in.pod, out, report))
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

// TestProperties holds every golden input to what must be true of any pod, however
// requests are captured and whatever the cluster knows.
func TestProperties(t *testing.T) {
	restricted := 0
	for _, input := range goldenInputs(t) {
		t.Run(filepath.Base(strings.TrimSuffix(input, ".in.yaml")), func(t *testing.T) {
			in := readInput(t, input)
			requireProperties(t, in.pod, in.namespace, in.config)
			harden(&in.pod.Spec)
			for _, cfg := range append(variants(), in.config) {
				requireProperties(t, in.pod, in.namespace, cfg)
			}
			_, report := Inject(in.pod, in.namespace, in.config)
			if report.Injected && report.Capture != CaptureRedirect && admitted(t, in.pod, api.LatestVersion()) {
				restricted++
			}
		})
	}
	if restricted < 40 {
		t.Errorf("only %d of the inputs are injected and restricted, so the profile is hardly tested", restricted)
	}
}

// variants are configurations that differ in all that decides on capture and form.
func variants() []Config {
	var list []Config
	for _, capture := range Captures {
		for _, minor := range []int{withNativeSidecars - 1, withNativeSidecars, withNamedNativePorts} {
			cfg := testConfig
			cfg.Capture, cfg.KubernetesMinor = capture, minor
			list = append(list, cfg)
		}
	}
	return list
}

func goldenInputs(t *testing.T) []string {
	t.Helper()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return inputs
}

// An input is a golden input: documents of YAML for the namespace, the pod and, if
// there is a third, what differs from testConfig.
type input struct {
	namespace NamespaceFacts
	pod       *corev1.Pod
	config    Config
}

func readInput(t *testing.T, path string) input {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(data, []byte("\n---\n"))
	if len(documents) < 2 {
		t.Fatalf("%s: want a Namespace, a line of ---, and a Pod", path)
	}
	var ns corev1.Namespace
	in := input{pod: &corev1.Pod{}, config: testConfig}
	for i, into := range []any{&ns, in.pod, &in.config}[:len(documents)] {
		if err := yaml.UnmarshalStrict(documents[i], into); err != nil {
			t.Fatalf("%s: document %d: %v", path, i+1, err)
		}
	}
	in.namespace = NamespaceFacts{Labels: ns.Labels, Annotations: ns.Annotations}
	return in
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
func requireProperties(t *testing.T, pod *corev1.Pod, ns NamespaceFacts, cfg Config) {
	t.Helper()
	before := asYAML(t, pod)
	once, report := Inject(pod, ns, cfg)
	if diff := cmp.Diff(before, asYAML(t, pod)); diff != "" {
		t.Fatalf("the input changed:\n%s", diff)
	}
	requireIdempotent(t, once, ns, cfg, report)
	if !report.Injected {
		if diff := cmp.Diff(before, asYAML(t, once)); diff != "" {
			t.Errorf("a pod that was not injected changed:\n%s", diff)
		}
		return
	}
	requireOurs(t, pod, once, report)
	requireCaptured(t, once, report)
	requireValid(t, once)
	requireProfile(t, pod, once, report.Capture)
}

// requireIdempotent injects a second and a third time, through the form that the API
// server passes on.
func requireIdempotent(t *testing.T, once *corev1.Pod, ns NamespaceFacts, cfg Config, first Report) {
	t.Helper()
	want := mustMarshal(once)
	for _, time := range []string{"second", "third"} {
		again := &corev1.Pod{}
		if err := json.Unmarshal(want, again); err != nil {
			t.Fatal(err)
		}
		again, report := Inject(again, ns, cfg)
		if got := mustMarshal(again); !bytes.Equal(want, got) {
			t.Errorf("the %s application changed the pod:\n%s", time, cmp.Diff(asYAML(t, once), asYAML(t, again)))
		}
		expected := first
		if first.Injected {
			expected = Report{Reason: AlreadyInjected, Message: report.Message}
		}
		if diff := cmp.Diff(expected, report); diff != "" {
			t.Errorf("the report of the %s application (-want +got):\n%s", time, diff)
		}
	}
}

// requireOurs checks that nothing of the pod's author came into our containers, that
// they are where the form puts them, and that nobody else has the token.
func requireOurs(t *testing.T, pod, out *corev1.Pod, report Report) {
	t.Helper()
	var ours []*corev1.Container
	inits := len(pod.Spec.InitContainers)
	if report.Capture == CaptureRedirect {
		ours = append(ours, &out.Spec.InitContainers[inits])
		inits++
	}
	contexts := map[string]*corev1.SecurityContext{CaptureContainerName: captureSecurityContext(), ContainerName: securityContext()}
	if report.Form == Classic {
		ours = append(ours, &out.Spec.Containers[0])
		requireWaits(t, ours[len(ours)-1])
	} else {
		ours = append(ours, &out.Spec.InitContainers[inits])
		inits++
		if !isNativeSidecar(ours[len(ours)-1]) {
			t.Error("the sidecar is no native one")
		}
	}
	if len(out.Spec.InitContainers) != inits || len(out.Spec.Containers)+inits != len(pod.Spec.Containers)+len(pod.Spec.InitContainers)+len(ours) {
		t.Error("containers came or went besides ours")
	}
	volume := out.Spec.Volumes[len(out.Spec.Volumes)-1]
	if diff := cmp.Diff(append(slices.Clip(pod.Spec.Volumes), tokenVolume(volume.Name)), out.Spec.Volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	for _, c := range ours {
		if contexts[c.Name] == nil || c.Image != testConfig.Image || c.Command != nil {
			t.Errorf("container %s has image %s and command %q", c.Name, c.Image, c.Command)
		}
		if diff := cmp.Diff(contexts[c.Name], c.SecurityContext); diff != "" {
			t.Errorf("security context of %s (-want +got):\n%s", c.Name, diff)
		}
	}
	for c := range containers(&out.Spec) {
		if mounts := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume.Name }); mounts != slices.Contains(ours, c) {
			t.Errorf("container %s mounts volume %s: %t; it is for ours alone", c.Name, volume.Name, mounts)
		}
	}
}

// requireWaits checks that the next container starts when the sidecar is ready.
func requireWaits(t *testing.T, c *corev1.Container) {
	t.Helper()
	if c.RestartPolicy != nil || c.Lifecycle == nil || c.Lifecycle.PostStart == nil || c.Lifecycle.PostStart.Exec == nil ||
		!slices.Contains(c.Lifecycle.PostStart.Exec.Command, "wait") {
		t.Errorf("container %s does not keep the app waiting: %v", c.Name, c.Lifecycle)
	}
}

// requireCaptured checks that requests find the sidecar and that no probe is taken
// for one.
func requireCaptured(t *testing.T, out *corev1.Pod, report Report) {
	t.Helper()
	listeners := map[int32]bool{checkPort: true}
	for _, p := range report.Ports {
		if got := targetPort(out, p.Name); report.Capture == CapturePort && got != p.Listen {
			t.Errorf("a Service that targets %s reaches port %d, want the sidecar's %d", p.Name, got, p.Listen)
		}
		if listeners[p.Listen] {
			t.Errorf("port %d has two listeners", p.Listen)
		}
		listeners[p.Listen] = true
	}
	for c := range serving(&out.Spec) {
		if c.Name == ContainerName {
			requireLeads(t, out, c, report)
			continue
		}
		for _, p := range c.Ports {
			if listeners[p.ContainerPort] && isTCP(&p) {
				t.Errorf("container %s and the sidecar both listen on %d", c.Name, p.ContainerPort)
			}
		}
		requireProbes(t, c, report)
	}
}

// requireLeads checks that the flags of our containers tell of the same ports as the
// report, and that the sidecar accepts its probes.
func requireLeads(t *testing.T, out *corev1.Pod, c *corev1.Container, report Report) {
	t.Helper()
	var inbound, redirects []string
	for _, p := range report.Ports {
		inbound = append(inbound, fmt.Sprintf("--inbound=%d:%d", p.Listen, p.App))
		redirects = append(redirects, fmt.Sprintf("--redirect=%d:%d", p.App, p.Listen))
	}
	if got := withPrefix(c.Args, "--inbound="); !slices.Equal(got, inbound) {
		t.Errorf("the sidecar serves %q, want %q", got, inbound)
	}
	for _, arg := range withPrefix(c.Args, "--probe=") {
		// As the kubelet does to arguments: a reference to a variable would be replaced.
		text := strings.ReplaceAll(arg, "$$", "")
		if strings.Contains(text, "$") {
			t.Errorf("%s refers to a variable", arg)
		}
		if _, err := probe.Parse(strings.ReplaceAll(strings.TrimPrefix(arg, "--probe="), "$$", "$")); err != nil {
			t.Errorf("%s: %v", arg, err)
		}
	}
	if report.Capture != CaptureRedirect {
		return
	}
	i := slices.IndexFunc(out.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == CaptureContainerName })
	if got := withPrefix(out.Spec.InitContainers[i].Args, "--redirect="); !slices.Equal(got, redirects) {
		t.Errorf("connections are led by %q, want %q", got, redirects)
	}
}

func withPrefix(args []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(s string) bool { return !strings.HasPrefix(s, prefix) })
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

// requireProbes checks that the kubelet finds every port that it is to ask, and that
// none leads it to where requests go.
func requireProbes(t *testing.T, c *corev1.Container, report Report) {
	t.Helper()
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		var port int32
		switch {
		case p.HTTPGet != nil && p.HTTPGet.Host == "":
			port = numberOf(c, p.HTTPGet.Port)
		case p.TCPSocket != nil && p.TCPSocket.Host == "":
			port = numberOf(c, p.TCPSocket.Port)
		case p.GRPC != nil:
			port = p.GRPC.Port
		default:
			continue
		}
		if port == 0 {
			t.Errorf("a probe of container %s names a port that is gone: %v", c.Name, p.ProbeHandler)
		}
		if slices.ContainsFunc(report.Ports, func(q Port) bool { return q.Listen == port || report.Capture == CaptureRedirect && q.App == port }) {
			t.Errorf("a probe of container %s goes to the sidecar as a request: %v", c.Name, p.ProbeHandler)
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
			switch needed = needed && capture == CaptureRedirect; {
			case needed && after && known(check, version):
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

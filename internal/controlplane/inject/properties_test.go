package inject

import (
	"bytes"
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/sidecar/probe"
)

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
	requireStarts(t, once, report)
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
// they are where the form puts them, and that no other container has the token.
func requireOurs(t *testing.T, pod, out *corev1.Pod, report Report) {
	t.Helper()
	var ours []*corev1.Container
	inits := slices.IndexFunc(out.Spec.InitContainers, isOurs)
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
		if !isNativeSidecar(ours[len(ours)-1]) {
			t.Error("the sidecar is not a native one")
		}
	}
	for _, lists := range [][2][]corev1.Container{{pod.Spec.InitContainers, out.Spec.InitContainers}, {pod.Spec.Containers, out.Spec.Containers}} {
		if want, got := names(lists[0]), names(slices.DeleteFunc(slices.Clone(lists[1]), isOurs)); !slices.Equal(want, got) {
			t.Errorf("containers besides ours are %q, want %q", got, want)
		}
	}
	volume := out.Spec.Volumes[len(out.Spec.Volumes)-1]
	want := slices.Clip(pod.Spec.Volumes)
	if socket := named(slices.Concat(out.Spec.InitContainers, out.Spec.Containers), ContainerName).VolumeMounts[2:]; len(socket) > 0 {
		want = append(want, socketVolume(socket[0].Name))
		requireShared(t, pod, out, socket[0].Name)
	}
	if diff := cmp.Diff(append(want, tokenVolume(volume.Name)), out.Spec.Volumes); diff != "" {
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

// requireShared checks that containers that run beside the sidecar have the socket where they have
// nothing else, and that none but the sidecar may write to its directory.
func requireShared(t *testing.T, pod, out *corev1.Pod, volume string) {
	t.Helper()
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume }) {
		t.Errorf("the volume %s of the socket is the pod's own", volume)
	}
	for c := range containers(&out.Spec) {
		var at []corev1.VolumeMount
		for _, m := range c.VolumeMounts {
			if m.Name == volume {
				at = append(at, m)
			}
		}
		want := []corev1.VolumeMount{{Name: volume, MountPath: socketDirectory, ReadOnly: c.Name != ContainerName}}
		if c.Name == CaptureContainerName || isMesh(c) || !runsOn(out, c) || len(at) == 0 && mountsAt(c, socketDirectory) {
			want = nil
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("mounts of the socket in container %s (-want +got):\n%s", c.Name, diff)
		}
	}
}

// runsOn reports whether the container runs as long as the pod.
func runsOn(pod *corev1.Pod, c *corev1.Container) bool {
	return isNativeSidecar(c) || slices.Contains(names(pod.Spec.Containers), c.Name)
}

func isOurs(c corev1.Container) bool {
	return c.Name == ContainerName || c.Name == CaptureContainerName
}

func names(list []corev1.Container) (names []string) {
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// requireStarts follows the kubelet from one init container to the next: none is kept
// from starting by a question to a sidecar that starts after it, no mesh starts after
// the sidecar, and the sidecar starts no sooner than that takes.
func requireStarts(t *testing.T, out *corev1.Pod, report Report) {
	t.Helper()
	inits := out.Spec.InitContainers
	at := slices.IndexFunc(inits, func(c corev1.Container) bool { return c.Name == ContainerName })
	if report.Form == Classic {
		at = len(inits)
	}
	for i := range inits {
		c := &inits[i]
		starts, others := askedOfSidecar(c)
		switch {
		case i < at && starts:
			t.Errorf("container %s never starts: it waits for a sidecar that starts after it", c.Name)
		case i < at && others && report.Form == Native && !isMesh(&inits[at-2]): // between them is weir-capture
			t.Errorf("container %s is asked by way of a sidecar that starts later than it has to", c.Name)
		case i > at && isMesh(c):
			t.Errorf("the mesh %s starts after the sidecar", c.Name)
		case i == at+1 && !starts && !others && (at < 2 || !isMesh(&inits[at-2])):
			t.Errorf("the sidecar starts before container %s, which does not need it", c.Name)
		}
	}
}

// askedOfSidecar reports whether the kubelet asks the sidecar before the container
// counts as started, and whether it asks it for anything else.
func askedOfSidecar(c *corev1.Container) (starts, others bool) {
	taken := func(get *corev1.HTTPGetAction) bool {
		return get != nil && strings.HasPrefix(get.Path, "/probe/"+testConfig.ProbeToken+"/"+c.Name+"/")
	}
	of := func(p *corev1.Probe) bool { return p != nil && taken(p.HTTPGet) }
	hook := func(h *corev1.LifecycleHandler) bool { return h != nil && taken(h.HTTPGet) }
	lifecycle := stdcmp.Or(c.Lifecycle, &corev1.Lifecycle{})
	return of(c.StartupProbe) || hook(lifecycle.PostStart), of(c.ReadinessProbe) || of(c.LivenessProbe) || hook(lifecycle.PreStop)
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
		requireProbes(t, c, afterSidecar(out, c), report)
	}
}

// requireLeads checks that the flags of our containers name the same ports as the
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

// afterSidecar reports whether the container starts after the sidecar.
func afterSidecar(out *corev1.Pod, c *corev1.Container) bool {
	order := slices.Concat(names(out.Spec.InitContainers), names(out.Spec.Containers))
	return slices.Index(order, c.Name) > slices.Index(order, ContainerName)
}

// requireProbes checks that the kubelet finds every port that it is to ask, and that
// none leads it to where requests go. A container that starts before the sidecar is
// asked by the kubelet until it has started.
func requireProbes(t *testing.T, c *corev1.Container, afterSidecar bool, report Report) {
	t.Helper()
	probes := []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe}
	if afterSidecar {
		probes = append(probes, c.StartupProbe)
	}
	for _, p := range probes {
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

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster"
)

// injectionRows are of pods by which an editor tries to have the webhook write another sidecar
// than Weir's, or none without a word, and of what the sidecar offers to those beside it.
func injectionRows() []row {
	const ours = "sidecar image=" + devcluster.SidecarImage
	var rows []row
	for _, wish := range [][2]string{
		{"sidecar-image", "evil:latest"},
		{"sidecar-command", `["/bin/sh"]`},
		{"sidecar-args", `["--fleet-address=evil:1"]`},
		{"sidecar-env", "WEIR_PROBE_TOKEN=x"},
		{"sidecar-volumes", "/"},
		{"sidecar-privileged", "true"},
	} {
		rows = append(rows, row{
			name: "an annotation " + wish[0], as: editor, do: annotated("config.weir.dev/"+wish[0], wish[1]),
			must: be("the sidecar is Weir's, with a warning", ours, "command=[]", "config.weir.dev/"+wish[0]+" is not known").without("evil", "/bin/sh"),
		})
	}
	forgery := func(name, part string, edit func(*corev1.Container)) row {
		return row{
			name: name, as: editor, do: forge(edit),
			must: be("it is admitted, and named", "the pod claims to be injected, and the "+part),
		}
	}
	rows = append(rows,
		row{
			name: "the annotation of an injected pod, without a sidecar", as: editor, do: annotated(v1alpha1.InjectedAnnotation, `{"version":"x"}`),
			must: be("it gets Weir's", ours),
		},
		forgery("a forged sidecar with another image", "image of container weir-sidecar", func(c *corev1.Container) { c.Image = "evil:latest" }),
		forgery("a forged sidecar with another command", "command of container weir-sidecar", func(c *corev1.Container) { c.Command = []string{"/bin/sh"} }),
		forgery("a forged sidecar with another argument", "arguments of container weir-sidecar", func(c *corev1.Container) { c.Args = append(c.Args, "--app-address=evil") }),
		forgery("a forged sidecar with an environment of Weir's", "environment of container weir-sidecar", func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "WEIR_FLEET_ADDRESS", Value: "evil:1"})
		}),
		forgery("a forged sidecar without a token", "token of container weir-sidecar", func(c *corev1.Container) { c.VolumeMounts = nil }),
		forgery("a forged sidecar with other ports", "ports of container weir-sidecar", func(c *corev1.Container) { c.Ports = nil }),
		row{
			name: "a container that has the sidecar's name", as: editor,
			do: attempt(func(p *corev1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: sidecarName, Image: "evil"})
			}),
			must: be("no sidecar, with a warning", "no sidecar", "rename it"),
		},
		row{
			name: "an init container that has the name of the one that redirects", as: editor,
			do: attempt(func(p *corev1.Pod) {
				p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "weir-capture", Image: "evil"})
			}),
			must: or("no sidecar with a warning, or both", "rename it", ours),
		},
		row{
			name: "a volume that has the name of the token's", as: editor,
			do: attempt(func(p *corev1.Pod) {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "weir-token", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
			}),
			must: be("the sidecar mounts its own", ours, "ServiceAccountTokenProjection{Audience:weir.dev").without("HostPath:&HostPathVolumeSource{Path"),
		},
		row{
			name: "the port of the check API", as: editor,
			do: attempt(func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: 15021})
			}),
			must: or("no sidecar with a warning, or Weir's", "move it", ours),
		},
		row{
			name: "a probe whose path names variables of the sidecar", as: editor,
			do: attempt(func(p *corev1.Pod) {
				p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/$(WEIR_PROBE_TOKEN)", Port: intstr.FromInt32(8080)}}}
				p.Annotations = map[string]string{v1alpha1.CaptureAnnotation: "redirect"}
			}),
			must: be("the kubelet expands none of them", ours, "/$$(WEIR_PROBE_TOKEN)"),
		},
		row{
			name: "a name of a header with a line break in a probe", as: editor,
			do: attempt(func(p *corev1.Pod) {
				get := &corev1.HTTPGetAction{Path: "/\r\nX: y", Port: intstr.FromInt32(8080), HTTPHeaders: []corev1.HTTPHeader{{Name: "X-A", Value: "b\r\nX-Weir: 1"}}}
				p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}}
				p.Annotations = map[string]string{v1alpha1.CaptureAnnotation: "redirect"}
			}),
			must: or("it stays text of JSON in an argument, or is refused", `\\r\\n`, "error: "),
		},
		row{
			name: "65 inbound ports", as: editor, do: annotated(v1alpha1.InboundPortsAnnotation, strings.Repeat("8080,", 64)+"8080"),
			must: be("the declared ports are used, with a warning", ours, "it has 65 entries"),
		},
		row{
			name: "inbound ports that are not ports", as: editor, do: annotated(v1alpha1.InboundPortsAnnotation, "0,65536,-1,1e3,8080;rm"),
			must: be("the declared ports are used, with a warning", ours, "0 is not a port number"),
		},
		row{
			name: "a mode with a command", as: editor, do: annotated(v1alpha1.ModeAnnotation, "bypass; reboot"),
			must: be("requests are limited, with a warning", ours, "enforce is used"),
		},
		row{
			name: "a grace period of a billion hours", as: editor, do: annotated(v1alpha1.ShutdownGracePeriodAnnotation, "1000000000h"),
			must: be("the default is used, with a warning", "--shutdown-grace-period=30s", "use a duration above 0"),
		},
		row{
			name: "neither enabled nor disabled, with a line break", as: editor, do: annotated(v1alpha1.InjectKey, "yes\nlevel=error"),
			must: be("no sidecar, and the text is quoted", "no sidecar", `yes\nlevel=error`),
		},
		row{
			name: "another image for the sidecar of a pod that runs", as: editor, do: changeImage,
			must: be("Kubernetes admits it, as SECURITY.md says, and no other field", "done", "error: "),
		},
		row{
			name: "pprof, variables, the configuration and files at the sidecar's port for metrics", as: container, do: adminPaths,
			must: be("404, 404, 404, 404 and 404", "404 404 404 404 404"),
		},
		row{
			name: "an answer to a probe without its token", as: container, do: probeWithoutToken,
			must: be("404", "404"),
		},
		row{
			name: "a megabyte for the check API", as: container, do: checkAPI("/v1/check", `{"policy":"`+strings.Repeat("x", 1<<20)+`"}`),
			must: or("400 or 413", "400", "413"),
		},
		row{
			name: "the victim's policy by the check API", as: container, do: checkAPI("/v1/check", `{"namespace":"shop","policy":"checkout","limit":"all","cost":1}`),
			must: be("400: the field does not exist", "400"),
		},
		row{
			name: "a cost of 10^18 by the check API", as: container, do: checkAPI("/v1/check", `{"policy":"checkout","limit":"all","cost":1000000000000000000}`),
			must: or("400, or refused", "400", `"allowed":false`, "429"),
		},
		row{
			name: "a counter that is set back by the check API", as: container, do: checkAPI("/v1/reset", `{"policy":"checkout","limit":"all"}`),
			must: be("403 with the cure", "403", "weir.dev/reset"),
		},
		row{
			name: "a forecast of 17 limits by the check API", as: container, do: checkAPI("/v1/forecast", `{"limits":[`+strings.Repeat(`{"policy":"checkout","limit":"all"},`, 17)+`{}]}`),
			must: be("400", "400"),
		},
	)
	return rows
}

// forge has a pod injected and then changes the sidecar, as somebody who wants a pod without
// limits that looks as if it had some.
func forge(edit func(*corev1.Container)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		pod := podOf(evilSpace, "", idleImage)
		pod.GenerateName = "evil-"
		if answer, err := w.try(ctx, func(c client.Client) error { return c.Create(ctx, pod, client.DryRunAll) }, pod); err != nil || sidecarOf(pod) == nil {
			return answer, err
		}
		edit(sidecarOf(pod))
		again := podOf(evilSpace, "", idleImage)
		again.GenerateName, again.Labels, again.Annotations, again.Spec = "evil-", pod.Labels, pod.Annotations, pod.Spec
		return w.try(ctx, func(c client.Client) error { return c.Create(ctx, again, client.DryRunAll) }, again)
	}
}

// changeImage changes the image of a running sidecar, and then its command.
func changeImage(ctx context.Context, w *world) (string, error) {
	pod := &corev1.Pod{}
	if err := w.kube.Get(ctx, client.ObjectKey{Namespace: evilSpace, Name: w.wireAt.Pod}, pod); err != nil {
		return "", err
	}
	image := pod.DeepCopy()
	sidecarOf(image).Image = "evil:latest"
	first, err := w.try(ctx, func(c client.Client) error { return c.Update(ctx, image, client.DryRunAll) }, nil)
	if err != nil {
		return "", err
	}
	command := pod.DeepCopy()
	sidecarOf(command).Command = []string{"/bin/sh"}
	second, err := w.try(ctx, func(c client.Client) error { return c.Update(ctx, command, client.DryRunAll) }, nil)
	return first + "; " + second, err
}

func adminPaths(ctx context.Context, w *world) (string, error) {
	var codes []string
	for _, path := range []string{"/debug/pprof/heap", "/debug/vars", "/env", "/config", "/etc/passwd"} {
		code, _, err := fetch(ctx, http.MethodGet, "http://"+w.wireAt.Admin+path, "")
		if err != nil {
			return "", err
		}
		codes = append(codes, fmt.Sprint(code))
	}
	return strings.Join(codes, " "), nil
}

func probeWithoutToken(ctx context.Context, w *world) (string, error) {
	code, _, err := fetch(ctx, http.MethodGet, "http://"+w.wireAt.Admin+"/probe/app/liveness", "")
	return fmt.Sprint(code), err
}

// checkAPI asks the check API of a sidecar, which only containers of its pod can reach.
func checkAPI(path, body string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		code, text, err := fetch(ctx, http.MethodPost, "http://"+w.wireAt.Check+path, body)
		return fmt.Sprint(code, " ", text), err
	}
}

// fetch makes a request over a connection of its own.
func fetch(ctx context.Context, method, url, body string) (code int, text string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true, DialContext: new(net.Dialer).DialContext}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var b strings.Builder
	_, err = copyMost(&b, resp.Body)
	return resp.StatusCode, b.String(), err
}

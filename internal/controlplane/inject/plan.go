package inject

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/sidecar/probe"
)

// A plan is all that decides what is put into a pod.
type plan struct {
	cfg Config
	tuning

	capture   Capture // the effective one
	aside     bool    // no request comes to the sidecar, and nobody chose that
	form      Form
	ports     []Port
	admin     int32
	volume    string         // of the token
	probes    []probe.Target // that the sidecar makes in the kubelet's place
	resources corev1.ResourceRequirements
	podGrace  time.Duration // from the request to end to the kill

	rlsAddress   string // of Envoy's rate limit service; empty where another container has the port
	socketVolume string // with checkSocket
}

// newPlan decides and warns; the pod stays as it is.
func newPlan(pod *corev1.Pod, ns NamespaceFacts, cfg Config, a *annotated) *plan {
	a.warnOfUnknown(pod.Labels)
	p := &plan{cfg: cfg, tuning: a.tuning(&cfg)}
	p.capture = effective(p.wantedCapture, pod, ns, a)
	if p.capture != CaptureExplicit {
		p.ports = choosePorts(&pod.Spec, p.capture, a)
		warnOfBypass(&pod.Spec, p.capture, p.ports, a)
	}
	if len(p.ports) == 0 {
		p.aside = p.capture != CaptureExplicit
		p.capture = CaptureExplicit
	}
	p.form = formOf(p.native, pod, p.capture, cfg.KubernetesMinor, a)
	p.ports, p.admin = assign(&pod.Spec, p.ports)
	p.rlsAddress = rlsAddress(&pod.Spec)
	p.volume = volumeName(&pod.Spec, "weir-token")
	if p.checkSocket {
		p.socketVolume = volumeName(&pod.Spec, "weir-check")
		warnOfNoSocket(&pod.Spec, a)
	}
	p.resources = p.requirements(&pod.Spec)
	p.podGrace = podGrace(&pod.Spec)
	return p
}

// rlsAddress is empty where another container has the port.
func rlsAddress(spec *corev1.PodSpec) string {
	if ownerOfPort(spec, rlsPort) != "" {
		return ""
	}
	return fmt.Sprintf("127.0.0.1:%d", rlsPort)
}

func podGrace(spec *corev1.PodSpec) time.Duration {
	if seconds := spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultPodGrace
}

// apply changes the pod.
func (p *plan) apply(spec *corev1.PodSpec) {
	if p.capture == CapturePort {
		takeNames(spec, p.ports)
	}
	if p.checkSocket {
		p.shareSocket(spec)
	}
	place := p.place(spec)
	if p.capture == CaptureRedirect {
		p.takeProbes(spec, place)
	}
	ours := p.initContainers()
	if p.form == Native {
		ours = append(ours, p.sidecar())
	} else {
		spec.Containers = slices.Concat([]corev1.Container{p.sidecar()}, spec.Containers)
	}
	spec.InitContainers = slices.Insert(spec.InitContainers, place, ours...)
	spec.Volumes = append(spec.Volumes, tokenVolume(p.volume))
	for _, name := range p.cfg.ImagePullSecrets {
		if secret := (corev1.LocalObjectReference{Name: name}); !slices.Contains(spec.ImagePullSecrets, secret) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, secret)
		}
	}
}

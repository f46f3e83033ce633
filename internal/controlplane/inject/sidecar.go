package inject

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// ContainerName is the name of the injected container.
	ContainerName = "weir-sidecar"

	// AdminPortName is the name of the port that serves the sidecar's metrics.
	AdminPortName = "weir-admin"

	// TokenAudience is the audience of the token by which a sidecar proves to the
	// controller which pod it runs in.
	TokenAudience = "weir.dev"

	tokenSeconds   = 3600
	tokenDirectory = "/var/run/secrets/weir.dev"
	tokenFile      = tokenDirectory + "/token"

	// apiTokenDirectory is where the API server mounts the pod's API credentials
	// into every container that has nothing there.
	apiTokenDirectory = "/var/run/secrets/kubernetes.io/serviceaccount"

	// program is the sidecar in its image. Only a hook has to name it.
	program = "/sidecar"

	podIPEnv = "WEIR_POD_IP"

	// probeTokenEnv is not an argument: containers that share the pod's processes may read
	// those.
	probeTokenEnv = "WEIR_PROBE_TOKEN"

	uid = 65532 // of no particular user: at least 10000, so it is not a user of the node
)

// volumeName returns a name for a volume of ours, base or that with a number, which the
// pod does not use: a volume of the pod's author must never be mounted into the sidecar.
func volumeName(spec *corev1.PodSpec, base string) string {
	taken := map[string]bool{}
	for i := range spec.Volumes {
		taken[spec.Volumes[i].Name] = true
	}
	name := base
	for i := 2; taken[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	return name
}

func tokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience:          TokenAudience,
				ExpirationSeconds: new(int64(tokenSeconds)),
				Path:              "token",
			},
		}}},
	}}
}

// sidecar renders the container. The kubelet runs the preStop hook of a native sidecar
// when it begins to end the pod, stops the sidecar after the app, and the sidecar
// finishes by itself on SIGTERM. So the hook ends nothing: it has clients move on.
func (p *plan) sidecar() corev1.Container {
	c := corev1.Container{
		Name:            ContainerName,
		Image:           p.cfg.Image,
		ImagePullPolicy: p.cfg.ImagePullPolicy,
		Args:            p.args(),
		Env:             p.env(),
		Ports:           p.containerPorts(),
		Resources:       p.resources,
		SecurityContext: securityContext(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: p.volume, MountPath: tokenDirectory, ReadOnly: true},
			noAPIToken(p.volume),
		},
		// The app starts once the first probe has passed, so it comes often.
		StartupProbe:             adminProbe("/readyz", p.admin, 1, 60),
		ReadinessProbe:           adminProbe("/readyz", p.admin, 2, 3),
		LivenessProbe:            adminProbe("/livez", p.admin, 10, 3),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	if p.checkSocket {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: p.socketVolume, MountPath: socketDirectory})
	}
	if p.form == Native {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
			Command: []string{program, "leave", fmt.Sprintf("--check-address=127.0.0.1:%d", checkPort)},
		}}}
		return c
	}
	// The kubelet starts the next container, the app's, when this one's hook is done.
	c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
		Command: []string{program, "wait", fmt.Sprintf("--admin-address=127.0.0.1:%d", p.admin)},
	}}}
	return c
}

// noAPIToken stands where the API server would mount the app's API credentials: our
// containers have no business with the API.
func noAPIToken(volume string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volume, MountPath: apiTokenDirectory, ReadOnly: true}
}

func (p *plan) args() []string {
	args := []string{
		"--fleet-address=" + p.cfg.FleetAddress,
		"--fleet-server-name=" + p.cfg.FleetServerName,
	}
	for _, port := range p.ports {
		args = append(args, fmt.Sprintf("--inbound=%d:%d", port.Listen, port.App))
	}
	if p.capture == CaptureRedirect {
		// An app that listens on the loopback device alone is out of others' reach,
		// which redirection must not change.
		args = append(args, "--app-address=$("+podIPEnv+")")
	}
	for i := range p.probes {
		args = append(args, "--probe="+strings.ReplaceAll(string(mustMarshal(p.probes[i])), "$", "$$"))
	}
	args = append(args,
		fmt.Sprintf("--check-address=127.0.0.1:%d", checkPort),
		"--rls-address="+p.rlsAddress,
		fmt.Sprintf("--admin-address=:%d", p.admin),
		"--token-file="+tokenFile,
		"--shutdown-grace-period="+p.shutdownGracePeriod.String(),
	)
	if p.checkSocket {
		args = append(args, "--check-socket="+socketFile)
	}
	if p.underscores != dropUnderscores {
		args = append(args, "--underscores="+p.underscores)
	}
	if p.cfg.TraceCollector != "" {
		args = append(args, "--otlp-endpoint="+p.cfg.TraceCollector)
	}
	if p.form == Classic {
		args = append(args, "--linger="+p.linger().String())
	}
	return args
}

// linger is how long a classic sidecar goes on accepting requests when the pod ends. It
// is signalled to stop at the same time as the app, which may take requests until the
// pod is killed. A little of that time is left to give credits back in.
func (p *plan) linger() time.Duration {
	const farewell = 5 * time.Second
	return max(0, min(p.shutdownGracePeriod, p.podGrace-farewell))
}

func (p *plan) env() []corev1.EnvVar {
	list := []corev1.EnvVar{
		fieldEnv("WEIR_POD_NAME", "metadata.name"),
		fieldEnv("WEIR_POD_NAMESPACE", "metadata.namespace"),
		fieldEnv("WEIR_POD_UID", "metadata.uid"),
		fieldEnv(podIPEnv, "status.podIP"),
		{Name: "WEIR_CA_BUNDLE", Value: p.cfg.CABundle},
		{Name: snapshotEnv, Value: p.cfg.Snapshot},
		{Name: "WEIR_MODE", Value: p.mode},
		{Name: captureEnv, Value: string(p.declared())},
	}
	if len(p.probes) > 0 {
		list = append(list, corev1.EnvVar{Name: probeTokenEnv, Value: p.cfg.ProbeToken})
	}
	return list
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

// containerPorts declares the listeners that others address: under redirection they
// go on addressing the app's ports.
func (p *plan) containerPorts() []corev1.ContainerPort {
	var list []corev1.ContainerPort
	if p.capture == CapturePort {
		for _, port := range p.ports {
			list = append(list, corev1.ContainerPort{Name: port.Name, ContainerPort: port.Listen, Protocol: corev1.ProtocolTCP})
		}
	}
	return append(list, corev1.ContainerPort{Name: AdminPortName, ContainerPort: p.admin, Protocol: corev1.ProtocolTCP})
}

// securityContext is that of the restricted profile, whatever the pod's own is.
func securityContext() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		RunAsUser:                new(int64(uid)),
		RunAsGroup:               new(int64(uid)),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func adminProbe(path string, port, periodSeconds, failureThreshold int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP},
		},
		TimeoutSeconds:   1,
		PeriodSeconds:    periodSeconds,
		FailureThreshold: failureThreshold,
	}
}

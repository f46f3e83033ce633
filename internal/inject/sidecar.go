package inject

import (
	"fmt"
	"slices"
	"strconv"

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

	uid = 65532 // of nobody in particular: at least 10000, so it is no user of the node
)

// volumeName returns a name for the token's volume that the pod does not use: a
// volume of the pod's author must never be mounted into the sidecar.
func volumeName(spec *corev1.PodSpec) string {
	const base = "weir-token"
	name := base
	for i := 2; slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }); i++ {
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

// sidecar renders the container. It has no preStop hook: the kubelet stops a
// native sidecar after the app, and the sidecar finishes by itself on SIGTERM.
func sidecar(spec *corev1.PodSpec, cfg Config, t tuning, ports []Port, admin int32, volume string) corev1.Container {
	return corev1.Container{
		Name:            ContainerName,
		Image:           cfg.Image,
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		Args:            args(cfg, t, ports, admin),
		Env:             env(cfg, t),
		Ports:           containerPorts(ports, admin),
		Resources:       t.requirements(spec),
		SecurityContext: securityContext(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volume, MountPath: tokenDirectory, ReadOnly: true},
			// Something stands here so that the API server does not mount the app's
			// API credentials: the sidecar has no business with the API.
			{Name: volume, MountPath: apiTokenDirectory, ReadOnly: true},
		},
		// The app starts once the first probe has passed, so it comes often.
		StartupProbe:             probe("/readyz", admin, 1, 60),
		ReadinessProbe:           probe("/readyz", admin, 2, 3),
		LivenessProbe:            probe("/livez", admin, 10, 3),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func args(cfg Config, t tuning, ports []Port, admin int32) []string {
	args := []string{
		"--fleet-address=" + cfg.FleetAddress,
		"--fleet-server-name=" + cfg.FleetServerName,
	}
	for _, p := range ports {
		args = append(args, fmt.Sprintf("--inbound=%d:%d", p.Listen, p.App))
	}
	return append(args,
		fmt.Sprintf("--check-address=127.0.0.1:%d", checkPort),
		fmt.Sprintf("--admin-address=:%d", admin),
		"--token-file="+tokenFile,
		"--shutdown-grace-period="+t.shutdownGracePeriod.String(),
	)
}

func env(cfg Config, t tuning) []corev1.EnvVar {
	return []corev1.EnvVar{
		fieldEnv("WEIR_POD_NAME", "metadata.name"),
		fieldEnv("WEIR_POD_NAMESPACE", "metadata.namespace"),
		fieldEnv("WEIR_POD_UID", "metadata.uid"),
		fieldEnv("WEIR_POD_IP", "status.podIP"),
		{Name: "WEIR_CA_BUNDLE", Value: cfg.CABundle},
		{Name: snapshotEnv, Value: cfg.Snapshot},
		{Name: "WEIR_MODE", Value: t.mode},
	}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

func containerPorts(ports []Port, admin int32) []corev1.ContainerPort {
	var list []corev1.ContainerPort
	for _, p := range ports {
		list = append(list, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Listen, Protocol: corev1.ProtocolTCP})
	}
	return append(list, corev1.ContainerPort{Name: AdminPortName, ContainerPort: admin, Protocol: corev1.ProtocolTCP})
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

func probe(path string, port, periodSeconds, failureThreshold int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP},
		},
		TimeoutSeconds:   1,
		PeriodSeconds:    periodSeconds,
		FailureThreshold: failureThreshold,
	}
}

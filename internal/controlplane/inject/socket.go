package inject

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// The socket is at the same path in all containers.
const (
	socketDirectory = "/var/run/weir.dev"
	socketFile      = socketDirectory + "/check.sock"
)

// shareSocket adds the volume of the check API's socket to the pod, and to the containers
// that run beside the sidecar. They may connect to a socket in a directory that is mounted
// read-only, and none can put its own there.
//
// The volume is in memory: it holds no data, and a cluster autoscaler takes volumes on disk
// for data that keeps a pod on its node.
func (p *plan) shareSocket(spec *corev1.PodSpec) {
	for c := range serving(spec) {
		if !isMesh(c) && !mountsAt(c, socketDirectory) {
			c.VolumeMounts = append(slices.Clip(c.VolumeMounts), corev1.VolumeMount{Name: p.socketVolume, MountPath: socketDirectory, ReadOnly: true})
		}
	}
	spec.Volumes = append(spec.Volumes, socketVolume(p.socketVolume))
}

func socketVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("64Ki"))},
	}}
}

// warnOfNoSocket names the containers that have something else where the socket would be.
func warnOfNoSocket(spec *corev1.PodSpec, a *annotated) {
	for c := range serving(spec) {
		if mountsAt(c, socketDirectory) {
			a.warn("%s is enabled, and container %s mounts a volume of its own at %s, so it does not have the socket: mount that elsewhere",
				v1alpha1.CheckSocketAnnotation, brief(c.Name), socketDirectory)
		}
	}
}

// mountsAt reports whether the container has a volume at the path. Kubernetes admits one.
func mountsAt(c *corev1.Container, at string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == at })
}

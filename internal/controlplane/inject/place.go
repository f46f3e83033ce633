package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// place returns the index among the init containers at which ours come.
//
//	native sidecars that are asked by way of ours   meshes           ours come
//	none                                            any              last
//	some                                            none             before the first of them
//	some                                            before those     before the first of them
//	some                                            after the first  after the last mesh
//
// The kubelet starts the next init container when the one before has started, by its
// own startup probe and hook. One that is asked by way of the sidecar therefore never
// starts before it. A mesh's is not asked to wait: our connections may have to pass it.
// The classic form runs when all of them have started, and is last too.
func (p *plan) place(spec *corev1.PodSpec) int {
	first := slices.IndexFunc(spec.InitContainers, func(c corev1.Container) bool {
		return isNativeSidecar(&c) && len(questions(&c, p.ports)) > 0
	})
	if p.capture != CaptureRedirect || p.form != Native || first < 0 {
		return len(spec.InitContainers)
	}
	place := first
	for i := range spec.InitContainers {
		if isMesh(&spec.InitContainers[i]) {
			place = max(first, i+1)
		}
	}
	return place
}

// Package inject puts Weir's sidecar into a pod.
//
// [Inject] is a pure function from a pod, what is known of its namespace and the
// injector's configuration to a new pod and a [Report]. It never changes its
// input, and applying it again changes nothing, so it does not matter how often
// or in which order admission calls it.
//
// The sidecar is a native one (an init container that keeps running) and comes last
// among the init containers. The others therefore run as if it were not there. None
// waits for its image or its probe, and none loses its network, because only what comes
// to the pod is captured. A mesh's native sidecar, which our connections may have to
// pass, is up before ours and goes down after it. A native sidecar of the app's that is
// probed by way of ours needs it to start, so ours then comes before it, though not
// before a mesh's. The app starts after all of them. Where the cluster cannot have
// that, the sidecar has its classic form: the first of the containers, whose hook keeps
// the app from starting before it is ready.
//
// There are two ways to capture requests. Redirection has an init container lead the
// connections to the app's ports to the sidecar, see package capture. Names and numbers
// of ports stay, and the kubelet's probes go by way of the sidecar, see package probe.
// Capture by port name has the sidecar take over the name of the app's HTTP port:
// Services that target the port by name follow it. The app keeps listening on its
// number, where the kubelet's probes and clients that address the pod by number still
// reach it. That needs no right that the restricted profile denies.
//
// A pod's annotations choose ports and amounts. They never reach the image, command,
// security context or volumes of our containers, which come from the injector's
// configuration alone. Its probes reach the sidecar as data, and ask only the pod's own
// captured ports.
package inject

// Package inject puts Weir's sidecar into a pod.
//
// [Inject] is a pure function from a pod, what is known of its namespace and the
// injector's configuration to a new pod and a [Report]. It never changes its
// input, and applying it again changes nothing, so it does not matter how often
// or in which order admission calls it.
//
// The sidecar is a native one (an init container that keeps running) and comes
// last among the init containers. The others therefore run as if it were not
// there: none waits for its image or its probe, and none loses its network,
// because traffic is captured by port name and not by rewriting packets. A
// mesh's native sidecar, which our connections may have to pass, is up before
// ours and goes down after it. The app starts after all of them.
//
// Capture by port name: the sidecar takes over the name of the app's HTTP port.
// Services that target the port by name follow it; the app keeps listening on
// its number, where the kubelet's probes still find it and which stays reachable
// for whoever addresses the pod by number.
//
// A pod's annotations choose ports and amounts. They never reach the sidecar's
// image, command, security context or volumes, which come from the injector's
// configuration alone.
package inject

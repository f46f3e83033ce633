// Package podrunner stands in for the kubelet where there are no containers. It runs
// the containers of the pods bound to its node as processes of this machine, each pod
// on a loopback address of its own.
//
// It keeps what Weir depends on: native sidecars start before and stop after
// the other containers; command, arguments and environment are the pod's own;
// projected service-account tokens are requested from the API server, bound to
// the pod and rotated; startup, readiness and liveness probes decide the pod's
// conditions; a container that dies is started again; deletion is graceful; kubectl has the logs
// of a container, as a whole, and connections to ports of a pod.
//
// It leaves out what has no meaning without containers: images are names of local
// programs, volumes other than those tokens do not exist, resources are not enforced,
// and the restart policy is always Always. Because there is no mount namespace and no
// network namespace, two variables are added to every container's environment:
// WEIR_SANDBOX_DIR is the directory that stands for the root of its volumes,
// WEIR_SANDBOX_IP the address that stands for both its loopback and its wildcard
// address.
package podrunner

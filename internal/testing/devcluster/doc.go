// Package devcluster runs Weir and a Kubernetes control plane as processes of
// this machine: no containers, no root. The demo and the end-to-end tests stand
// on it.
//
// These parts are real: etcd, the API server with its admission and RBAC, Deployments
// and their scheduling, the manifests of config/default, the controller with the rights
// of its service account, and sidecars started with exactly the arguments that
// injection wrote. These are stand-ins: the kubelet (package podrunner), and the
// Services in front of the controller, whose ports are reached directly.
package devcluster

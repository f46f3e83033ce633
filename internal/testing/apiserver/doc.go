// Package apiserver runs a Kubernetes API server, with its etcd and nothing else of a cluster, for tests.
package apiserver

package devcluster

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/inject"
)

// An Endpoint says where one sidecar is reached on this machine, each as
// host:port.
type Endpoint struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Proxy     string `json:"proxy"` // what clients of the application connect to
	Check     string `json:"check"` // what the application may ask
	Admin     string `json:"admin"` // metrics, health and configuration
}

// Endpoints returns the sidecars of all pods that are ready, sorted by name.
func (c *Cluster) Endpoints(ctx context.Context) ([]Endpoint, error) {
	pods, err := c.Clients.CoreV1().Pods(corev1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	endpoints := []Endpoint{}
	for i := range pods.Items {
		if e, ok := endpointOf(&pods.Items[i]); ok {
			endpoints = append(endpoints, e)
		}
	}
	slices.SortFunc(endpoints, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return endpoints, nil
}

// endpointOf reads the listeners off the arguments that injection wrote.
func endpointOf(pod *corev1.Pod) (Endpoint, bool) {
	if pod.DeletionTimestamp != nil || !isReady(pod) {
		return Endpoint{}, false
	}
	i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == inject.ContainerName })
	if i < 0 {
		return Endpoint{}, false
	}
	e := Endpoint{Namespace: pod.Namespace, Pod: pod.Name}
	for _, arg := range pod.Spec.InitContainers[i].Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch name {
		case "inbound":
			listen, _, _ := strings.Cut(value, ":")
			e.Proxy = cmp.Or(e.Proxy, net.JoinHostPort(pod.Status.PodIP, listen))
		case "check-address":
			e.Check = onAddressOf(pod, value)
		case "admin-address":
			e.Admin = onAddressOf(pod, value)
		}
	}
	return e, true
}

// onAddressOf replaces the loopback or wildcard address by the pod's, as the
// sandbox does.
func onAddressOf(pod *corev1.Pod, address string) string {
	port := address[strings.LastIndexByte(address, ':')+1:]
	return net.JoinHostPort(pod.Status.PodIP, port)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	patience = 4 * time.Minute // for every wait, on a machine that is busy
	interval = 250 * time.Millisecond
)

func newClient(kubeconfig []byte) (kubernetes.Interface, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// await polls until a condition holds. The last error of the condition is part of
// the error.
func await(ctx context.Context, condition func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(last, err)
	}
	return nil
}

// awaitNodes returns what Kubernetes has assigned to each node.
func (c *Cluster) awaitNodes(ctx context.Context) (map[string]nodeNetwork, error) {
	found := map[string]nodeNetwork{}
	err := await(ctx, func(ctx context.Context) error {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range list.Items {
			network, err := describeNode(node)
			if err != nil {
				return err
			}
			found[node.Name] = network
		}
		for _, name := range c.names {
			if _, ok := found[name]; !ok {
				return fmt.Errorf("node %s has not registered", name)
			}
		}
		return nil
	})
	return found, err
}

func describeNode(node corev1.Node) (nodeNetwork, error) {
	network := nodeNetwork{Name: node.Name}
	pods, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return network, fmt.Errorf("node %s has no range for pods yet: %w", node.Name, err)
	}
	network.Pods = pods
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			network.Address, err = netip.ParseAddr(address.Address)
			return network, err
		}
	}
	return network, fmt.Errorf("node %s has no address yet", node.Name)
}

// awaitReady waits for what every pod relies on.
func (c *Cluster) awaitReady(ctx context.Context) error {
	return await(ctx, func(ctx context.Context) error {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range list.Items {
			if !isReady(node) {
				return fmt.Errorf("node %s is not ready", node.Name)
			}
		}
		system := c.client.AppsV1()
		proxy, err := system.DaemonSets(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := proxy.Status.NumberReady; int(got) != len(c.names) {
			return fmt.Errorf("kube-proxy is ready on %d of %d nodes", got, len(c.names))
		}
		dns, err := system.Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !isAvailable(dns) {
			return fmt.Errorf("coredns has %d of %d replicas", dns.Status.AvailableReplicas, dns.Status.Replicas)
		}
		// Without it pods of the default namespace are refused.
		_, err = c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func isReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func isAvailable(d *appsv1.Deployment) bool {
	return d.Spec.Replicas != nil && d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas >= *d.Spec.Replicas
}

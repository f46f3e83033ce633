package podrunner

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// register creates the node, ready and without the taint that admission puts on
// every new one.
func (r *Runner) register(ctx context.Context) error {
	nodes := r.Client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   r.NodeName,
			Labels: map[string]string{corev1.LabelHostname: r.NodeName, corev1.LabelOSStable: "linux"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Spec.Taints = nil
	if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   resource.MustParse("512"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: r.Network.NodeAddress().String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = claimPort
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Running",
		Message: "pods run as processes", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
	}}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

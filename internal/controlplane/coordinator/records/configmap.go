package records

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// load returns the data below a key of a ConfigMap and its version, "" when there is
// none.
func load(ctx context.Context, client corev1client.ConfigMapInterface, name, key string) ([]byte, string, error) {
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	return found.BinaryData[key], found.ResourceVersion, nil
}

// save replaces the ConfigMap that still has the version of next, or makes it when
// that is "", and returns the new version.
func save(ctx context.Context, client corev1client.ConfigMapInterface, next *corev1.ConfigMap) (string, error) {
	write := func() (*corev1.ConfigMap, error) { return client.Update(ctx, next, metav1.UpdateOptions{}) }
	if next.ResourceVersion == "" {
		write = func() (*corev1.ConfigMap, error) { return client.Create(ctx, next, metav1.CreateOptions{}) }
	}
	written, err := write()
	if err != nil {
		return "", fmt.Errorf("write ConfigMap %s: %w", next.Name, err)
	}
	return written.ResourceVersion, nil
}

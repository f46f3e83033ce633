package coordinator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// BirthsConfigMap is how the names of the ConfigMaps begin that hold births.
const BirthsConfigMap = "weir-births"

const birthsKey = "births"

// ConfigMapBirths is the BirthStore in ConfigMaps. The API server's resourceVersion makes
// each change a compare-and-swap.
type ConfigMapBirths struct {
	client corev1client.ConfigMapInterface
}

// NewConfigMapBirths returns the store in the namespace of client.
func NewConfigMapBirths(client corev1client.ConfigMapInterface) *ConfigMapBirths {
	return &ConfigMapBirths{client: client}
}

// Load implements BirthStore.
func (b *ConfigMapBirths) Load(ctx context.Context, shard int) ([]byte, string, error) {
	found, err := b.client.Get(ctx, birthsName(shard), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read ConfigMap %s: %w", birthsName(shard), err)
	}
	return found.BinaryData[birthsKey], found.ResourceVersion, nil
}

// Save implements BirthStore.
func (b *ConfigMapBirths) Save(ctx context.Context, shard int, data []byte, version string) (string, error) {
	next := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: birthsName(shard), ResourceVersion: version},
		BinaryData: map[string][]byte{birthsKey: data},
	}
	write := func() (*corev1.ConfigMap, error) { return b.client.Update(ctx, next, metav1.UpdateOptions{}) }
	if version == "" {
		write = func() (*corev1.ConfigMap, error) { return b.client.Create(ctx, next, metav1.CreateOptions{}) }
	}
	written, err := write()
	if err != nil {
		return "", fmt.Errorf("write ConfigMap %s: %w", next.Name, err)
	}
	return written.ResourceVersion, nil
}

func birthsName(shard int) string { return fmt.Sprintf("%s-%d", BirthsConfigMap, shard) }

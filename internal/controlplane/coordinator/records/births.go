package records

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// BirthsConfigMap is how the names of the ConfigMaps begin that hold births.
const BirthsConfigMap = "weir-births"

const birthsKey = "births"

// Births is the births.Store in ConfigMaps.
type Births struct {
	client corev1client.ConfigMapInterface
}

// NewBirths returns the store in the namespace of client.
func NewBirths(client corev1client.ConfigMapInterface) *Births {
	return &Births{client: client}
}

// Load implements births.Store.
func (b *Births) Load(ctx context.Context, shard int) ([]byte, string, error) {
	return load(ctx, b.client, birthsName(shard), birthsKey)
}

// Save implements births.Store.
func (b *Births) Save(ctx context.Context, shard int, data []byte, version string) (string, error) {
	return save(ctx, b.client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: birthsName(shard), ResourceVersion: version},
		BinaryData: map[string][]byte{birthsKey: data},
	})
}

func birthsName(shard int) string { return fmt.Sprintf("%s-%d", BirthsConfigMap, shard) }

package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// How the ConfigMaps of durable counters are found.
const (
	CountersConfigMap = "weir-counters"     // of the terms; those of policies go on with a digest
	CountersLabel     = "weir.dev/record"   // its value is CountersValue
	CountersValue     = "counters"          //
	PolicyAnnotation  = "weir.dev/counters" // the policy, namespace/name
	countersKey       = "record"
	countersDigest    = 40 // characters
)

// ConfigMapJournals is the JournalStore in ConfigMaps. The API server's resourceVersion
// makes each change a compare-and-swap. They have no owner: a policy that is created again
// finds what it was granted.
type ConfigMapJournals struct {
	client corev1client.ConfigMapInterface
}

// NewConfigMapJournals returns the store in the namespace of client, whose rate others
// should not use up.
func NewConfigMapJournals(client corev1client.ConfigMapInterface) *ConfigMapJournals {
	return &ConfigMapJournals{client: client}
}

// Load implements JournalStore.
func (j *ConfigMapJournals) Load(ctx context.Context, policy string) ([]byte, string, error) {
	found, err := j.client.Get(ctx, countersName(policy), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read ConfigMap %s: %w", countersName(policy), err)
	}
	return found.BinaryData[countersKey], found.ResourceVersion, nil
}

// Save implements JournalStore.
func (j *ConfigMapJournals) Save(ctx context.Context, policy string, data []byte, version string) (string, error) {
	next := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: countersName(policy), ResourceVersion: version,
			Labels: map[string]string{CountersLabel: CountersValue}, Annotations: map[string]string{PolicyAnnotation: policy},
		},
		BinaryData: map[string][]byte{countersKey: data},
	}
	write := func() (*corev1.ConfigMap, error) { return j.client.Update(ctx, next, metav1.UpdateOptions{}) }
	if version == "" {
		write = func() (*corev1.ConfigMap, error) { return j.client.Create(ctx, next, metav1.CreateOptions{}) }
	}
	written, err := write()
	if err != nil {
		return "", fmt.Errorf("write ConfigMap %s: %w", next.Name, err)
	}
	return written.ResourceVersion, nil
}

// Sweep implements JournalStore. It reads one at a time: each may have a megabyte.
func (j *ConfigMapJournals) Sweep(ctx context.Context, over func(policy string, data []byte) bool) error {
	one := metav1.ListOptions{LabelSelector: CountersLabel + "=" + CountersValue, Limit: 1}
	for {
		found, err := j.client.List(ctx, one)
		if err != nil {
			return fmt.Errorf("find the records of durable counters: %w", err)
		}
		for i := range found.Items {
			m := &found.Items[i]
			policy := m.Annotations[PolicyAnnotation]
			if policy == "" || !over(policy, m.BinaryData[countersKey]) {
				continue
			}
			same := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &m.ResourceVersion}}
			if err := j.client.Delete(ctx, m.Name, same); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return fmt.Errorf("delete ConfigMap %s: %w", m.Name, err)
			}
		}
		if one.Continue = found.Continue; one.Continue == "" {
			return nil
		}
	}
}

// countersName returns the name of the ConfigMap of a policy, "" for that of the terms.
func countersName(policy string) string {
	if policy == "" {
		return CountersConfigMap
	}
	digest := sha256.Sum256([]byte(policy))
	return CountersConfigMap + "-" + hex.EncodeToString(digest[:])[:countersDigest]
}

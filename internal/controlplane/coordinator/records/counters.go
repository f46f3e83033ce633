package records

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

// How the ConfigMaps of durable counters are found.
const (
	CountersConfigMap = "weir-counters"     // of the terms; those of policies go on with a digest
	CountersLabel     = "weir.dev/record"   // its value is CountersValue
	CountersValue     = "counters"          //
	PolicyAnnotation  = "weir.dev/counters" // the policy, namespace/name
	countersKey       = "record"
	countersDigest    = 40 // characters
)

// Counters is the journals.Store in ConfigMaps. They have no owner: a policy that is created
// again finds what it was granted.
type Counters struct {
	client corev1client.ConfigMapInterface
}

// NewCounters returns the store in the namespace of client, whose rate others
// should not use up.
func NewCounters(client corev1client.ConfigMapInterface) *Counters {
	return &Counters{client: client}
}

// Load implements journals.Store.
func (j *Counters) Load(ctx context.Context, policy string) ([]byte, string, error) {
	return load(ctx, j.client, CountersName(policy), countersKey)
}

// Save implements journals.Store.
func (j *Counters) Save(ctx context.Context, policy string, data []byte, version string) (string, error) {
	return save(ctx, j.client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: CountersName(policy), ResourceVersion: version,
			Labels: map[string]string{CountersLabel: CountersValue}, Annotations: map[string]string{PolicyAnnotation: policy},
		},
		BinaryData: map[string][]byte{countersKey: data},
	})
}

// Sweep implements journals.Store. It reads one at a time: each may have a megabyte.
func (j *Counters) Sweep(ctx context.Context, over func(policy string, data []byte) bool) error {
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

// CountersName returns the name of the ConfigMap of a policy, "" for that of the terms.
func CountersName(policy string) string {
	if policy == "" {
		return CountersConfigMap
	}
	digest := sha256.Sum256([]byte(policy))
	return CountersConfigMap + "-" + hex.EncodeToString(digest[:])[:countersDigest]
}

// Object implements journals.Store.
func (j *Counters) Object(policy string) string { return "ConfigMap " + CountersName(policy) }

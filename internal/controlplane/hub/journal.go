package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
)

// How the ConfigMaps of budgets are found.
const (
	RecordPrefix = "weir-budget-"       // of their names; a digest of the id follows
	RecordLabel  = "weir.dev/record"    // its value is RecordValue
	RecordValue  = "budget"             //
	IDAnnotation = "weir.dev/budget-id" // the id itself
	recordKey    = "record"             // of the data: a kubernetes.Record in JSON
	digestLength = 40                   // characters of the id's digest
)

// A Journal keeps the record of each budget in a ConfigMap. The API server's
// resourceVersion makes each change a compare-and-swap.
type Journal struct {
	client corev1client.ConfigMapInterface
}

var _ kubernetes.Journal = (*Journal)(nil)

// NewJournal returns the journal in the namespace of client, whose rate others should not
// use up: a budget that is used to the full writes every half a block.
func NewJournal(client corev1client.ConfigMapInterface) *Journal { return &Journal{client: client} }

// RecordName returns the name of the ConfigMap of the budget of that id.
func RecordName(id string) string {
	digest := sha256.Sum256([]byte(id))
	return RecordPrefix + hex.EncodeToString(digest[:])[:digestLength]
}

// Load implements [kubernetes.Journal]. A record that cannot be read is an error that
// says what to do.
func (j *Journal) Load(ctx context.Context, id string) (kubernetes.Record, string, error) {
	found, err := j.client.Get(ctx, RecordName(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return kubernetes.Record{}, "", fmt.Errorf("ConfigMap %s: %w", RecordName(id), kubernetes.ErrNotFound)
	}
	if err != nil {
		return kubernetes.Record{}, "", fmt.Errorf("read ConfigMap %s: %w", RecordName(id), err)
	}
	r, err := decodeRecord(found, id)
	return r, found.ResourceVersion, err
}

// Save implements [kubernetes.Journal].
func (j *Journal) Save(ctx context.Context, id string, r kubernetes.Record, version string) (string, error) {
	written, err := j.write(ctx, id, r, version)
	switch {
	case err == nil:
		return written.ResourceVersion, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return "", &kubernetes.ConflictError{ID: id, Cause: err}
	}
	return "", fmt.Errorf("write ConfigMap %s: %w", RecordName(id), err)
}

func (j *Journal) write(ctx context.Context, id string, r kubernetes.Record, version string) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:            RecordName(id),
			ResourceVersion: version,
			Labels:          map[string]string{RecordLabel: RecordValue},
			Annotations:     map[string]string{IDAnnotation: id},
		},
		Data: map[string]string{recordKey: string(text)},
	}
	if version == "" {
		return j.client.Create(ctx, c, metav1.CreateOptions{})
	}
	return j.client.Update(ctx, c, metav1.UpdateOptions{})
}

func decodeRecord(from *corev1.ConfigMap, id string) (kubernetes.Record, error) {
	var r kubernetes.Record
	if kept := from.Annotations[IDAnnotation]; kept != id {
		return r, fmt.Errorf("ConfigMap %s is annotated %s=%q, not %q; delete it: the open window then grants nothing more",
			from.Name, IDAnnotation, kept, id)
	}
	err := json.Unmarshal([]byte(from.Data[recordKey]), &r)
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return r, fmt.Errorf("data.%s of ConfigMap %s is damaged; delete it: the open window then grants nothing more: %w",
			recordKey, from.Name, err)
	}
	return r, nil
}

package coordinator

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TermConfigMap is the name of the ConfigMap that records the term.
const TermConfigMap = "weir-term"

// The keys of the ConfigMap.
const (
	termKey    = "term"
	stoppedKey = "stopped"      // microseconds since the Unix epoch
	partsKey   = "ledger-parts" // how many other ConfigMaps go on with the ledger
	sumKey     = "ledger-sha256"
	poolsKey   = "pools"
	returnsKey = "returns"
	ledgerKey  = "ledger" // its beginning
)

// ConfigMapTerms is the TermStore in a ConfigMap. The API server's
// resourceVersion makes each change a compare-and-swap, so of two leaders only
// the later can write. A ledger that does not fit goes on in parts, which are written before
// and mean nothing until the ConfigMap names them.
type ConfigMapTerms struct {
	client corev1client.ConfigMapInterface
	most   int // bytes in one ConfigMap
}

// NewConfigMapTerms returns the store in the namespace of client.
func NewConfigMapTerms(client corev1client.ConfigMapInterface) *ConfigMapTerms {
	return &ConfigMapTerms{client: client, most: maxConfigMap}
}

// Begin implements TermStore. When the ConfigMap does not exist, the term starts
// at the present Unix time in seconds. That is higher than any term that a deleted ConfigMap
// has counted to, and that sidecars remember.
func (t *ConfigMapTerms) Begin(ctx context.Context, leads func() bool) (Handover, error) {
	var out Handover
	err := retry.OnError(retry.DefaultBackoff, raced, func() error {
		var err error
		out, err = t.begin(ctx, leads)
		return err
	})
	if err != nil {
		return Handover{}, fmt.Errorf("begin a term in ConfigMap %s: %w", TermConfigMap, err)
	}
	return out, nil
}

func raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

func (t *ConfigMapTerms) begin(ctx context.Context, leads func() bool) (Handover, error) {
	recorded, err := t.client.Get(ctx, TermConfigMap, metav1.GetOptions{})
	if !leads() {
		return Handover{}, ErrLapsed
	}
	if apierrors.IsNotFound(err) {
		begun := Handover{Term: uint64(time.Now().Unix()), First: true}
		recorded = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: TermConfigMap}}
		record(recorded, Handover{Term: begun.Term}, 0, 0)
		_, err = t.client.Create(ctx, recorded, metav1.CreateOptions{})
		return begun, err
	}
	if err != nil {
		return Handover{}, err
	}
	begun, err := recall(recorded)
	if err != nil {
		return Handover{}, err
	}
	if err := t.complete(ctx, recorded, &begun); err != nil {
		return Handover{}, err
	}
	begun.Term++
	record(recorded, Handover{Term: begun.Term}, 0, 0)
	_, err = t.client.Update(ctx, recorded, metav1.UpdateOptions{})
	return begun, err
}

// End implements TermStore.
func (t *ConfigMapTerms) End(ctx context.Context, h Handover) error {
	if err := t.end(ctx, h); err != nil {
		return fmt.Errorf("end term %d in ConfigMap %s: %w", h.Term, TermConfigMap, err)
	}
	return nil
}

func (t *ConfigMapTerms) end(ctx context.Context, h Handover) error {
	if _, err := t.present(ctx, h.Term); err != nil {
		return err // nothing else need be written
	}
	here := min(len(h.Ledger), t.most-len(h.Pools)-len(h.Returns))
	parts, err := t.writeParts(ctx, h.Term, h.Ledger[here:])
	if err != nil {
		return err
	}
	return retry.OnError(retry.DefaultBackoff, raced, func() error {
		recorded, err := t.present(ctx, h.Term)
		if err != nil {
			return err
		}
		record(recorded, h, here, parts)
		_, err = t.client.Update(ctx, recorded, metav1.UpdateOptions{})
		return err
	})
}

// present returns the ConfigMap, if no later term has begun.
func (t *ConfigMapTerms) present(ctx context.Context, term uint64) (*corev1.ConfigMap, error) {
	recorded, err := t.client.Get(ctx, TermConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if now, err := recall(recorded); err != nil || now.Term != term {
		return nil, fmt.Errorf("%w: %d is recorded", ErrFenced, now.Term)
	}
	return recorded, nil
}

// record enters h, with that many bytes of its ledger here and the rest in parts.
func record(into *corev1.ConfigMap, h Handover, here, parts int) {
	into.Data = map[string]string{termKey: strconv.FormatUint(h.Term, 10)}
	into.BinaryData = map[string][]byte{}
	if h.Stopped > 0 {
		into.Data[stoppedKey] = strconv.FormatInt(int64(h.Stopped), 10)
	}
	if h.Pools != nil {
		into.BinaryData[poolsKey] = h.Pools
	}
	if h.Returns != nil {
		into.BinaryData[returnsKey] = h.Returns
	}
	if h.Ledger != nil {
		into.BinaryData[ledgerKey] = h.Ledger[:here]
		into.Data[partsKey], into.Data[sumKey] = strconv.Itoa(parts), sumOf(h.Ledger)
	}
}

func recall(from *corev1.ConfigMap) (Handover, error) {
	term, err := strconv.ParseUint(from.Data[termKey], 10, 64)
	if err != nil {
		return Handover{}, fmt.Errorf("data.%s is not a number; delete the ConfigMap: %w", termKey, err)
	}
	h := Handover{Term: term, Pools: from.BinaryData[poolsKey], Returns: from.BinaryData[returnsKey], Ledger: from.BinaryData[ledgerKey]}
	if text, ok := from.Data[stoppedKey]; ok {
		stopped, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Handover{}, fmt.Errorf("data.%s is not a number; delete the ConfigMap: %w", stoppedKey, err)
		}
		h.Stopped = limiter.Instant(stopped)
	}
	return h, nil
}

package records

import (
	"context"
	"errors"
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

// ErrFenced is what the error of Terms.End wraps when a later term has begun.
var ErrFenced = errors.New("a later term has begun")

// ErrLapsed is what the error of Terms.Begin wraps when this process no longer leads.
var ErrLapsed = errors.New("this process no longer holds the lock of leader election")

// A Handover is what one term leaves to the next.
type Handover struct {
	// Term is the number of a term: the one that begins when Begin returns it, the one that
	// ends when End takes it.
	Term uint64
	// First says that no term was ever recorded, so there is nobody whose grants
	// could have been forgotten. Only Begin sets it.
	First bool
	// Stopped is the instant, on the store's clock, after which the predecessor
	// served nothing; 0 when it did not stop in order.
	Stopped limiter.Instant
	// Pools is what the Export of the pools' memory wrote, and Ledger that of the
	// store's; nil when there is none. Returns says which sidecars were absent, nil when no
	// window is open in which one may have been.
	Pools, Ledger, Returns []byte
	// Lost says why Ledger is nil although the predecessor handed one over. Only Begin
	// sets it.
	Lost error
}

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

// Terms is the coordinator.TermStore in a ConfigMap: of two leaders only the later can write.
// A ledger that does not fit goes on in parts, which are written before and mean nothing until
// the ConfigMap names them.
type Terms struct {
	client corev1client.ConfigMapInterface
	most   int // bytes in one ConfigMap
}

// NewTerms returns the store in the namespace of client.
func NewTerms(client corev1client.ConfigMapInterface) *Terms {
	return &Terms{client: client, most: MaxObject}
}

// Begin implements coordinator.TermStore. When the ConfigMap does not exist, the term starts
// at the present Unix time in seconds. That is higher than any term that a deleted ConfigMap
// has counted to, and that sidecars remember.
func (t *Terms) Begin(ctx context.Context, leads func() bool) (Handover, error) {
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

func (t *Terms) begin(ctx context.Context, leads func() bool) (Handover, error) {
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

// End implements coordinator.TermStore.
func (t *Terms) End(ctx context.Context, h Handover) error {
	if err := t.end(ctx, h); err != nil {
		return fmt.Errorf("end term %d in ConfigMap %s: %w", h.Term, TermConfigMap, err)
	}
	return nil
}

func (t *Terms) end(ctx context.Context, h Handover) error {
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
func (t *Terms) present(ctx context.Context, term uint64) (*corev1.ConfigMap, error) {
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

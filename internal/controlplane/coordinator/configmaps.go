package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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

const (
	// maxConfigMap keeps a ConfigMap below the API server's limit of 1 MiB.
	maxConfigMap = 1000 << 10
	// maxParts bounds what a hand-over writes: about two million keys, more than fit
	// into the memory of a controller that is not given more than by default.
	maxParts = 40
	// maxHandover is what a hand-over has room for, in bytes.
	maxHandover = (1 + maxParts) * maxConfigMap

	partsAtOnce = 8
	partRetry   = 200 * time.Millisecond
)

// partLabel is on every part of a ledger; its value is the term that wrote it.
const partLabel = "weir.dev/handover"

// partName returns the name of a part. No other term writes a ConfigMap of that name.
func partName(term uint64, part int) string {
	return fmt.Sprintf("%s-%d-%d", TermConfigMap, term, part)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// writeParts writes the rest of a ledger, which may be empty, and returns how many
// parts that took. It tries until ctx is done.
func (t *ConfigMapTerms) writeParts(ctx context.Context, term uint64, rest []byte) (int, error) {
	writing, ctx := errgroup.WithContext(ctx)
	writing.SetLimit(partsAtOnce)
	parts := 0
	for data := range slices.Chunk(rest, t.most) {
		part := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: partName(term, parts), Labels: map[string]string{partLabel: strconv.FormatUint(term, 10)},
			},
			Immutable:  new(true),
			BinaryData: map[string][]byte{ledgerKey: data},
		}
		writing.Go(func() error { return t.writePart(ctx, part) })
		parts++
	}
	return parts, writing.Wait()
}

func (t *ConfigMapTerms) writePart(ctx context.Context, part *corev1.ConfigMap) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, partRetry, true, func(ctx context.Context) (bool, error) {
		_, last = t.client.Create(ctx, part, metav1.CreateOptions{})
		if apierrors.IsForbidden(last) || apierrors.IsInvalid(last) || apierrors.IsRequestEntityTooLargeError(last) {
			return false, last
		}
		return last == nil || apierrors.IsAlreadyExists(last), nil // the answer to an earlier try was lost
	})
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", part.Name, errors.Join(err, last))
	}
	return nil
}

// complete reads the rest of the ledger that is recorded. A ledger with a byte that is
// missing or changed is as good as none: it might not know of everything that was granted.
// The error says that this cannot be found out now.
func (t *ConfigMapTerms) complete(ctx context.Context, recorded *corev1.ConfigMap, h *Handover) error {
	if h.Ledger == nil {
		return nil
	}
	rest, err := t.readParts(ctx, h.Term, recorded.Data[partsKey])
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, errParts):
		h.Ledger, h.Lost = nil, err
	case err != nil:
		return err
	default:
		h.Ledger = slices.Concat(h.Ledger, rest)
		if sumOf(h.Ledger) != recorded.Data[sumKey] {
			h.Ledger, h.Lost = nil, errSum
		}
	}
	return nil
}

var (
	errParts = errors.New("data." + partsKey + " is not a number of parts")
	errSum   = errors.New("the parts of the ledger are not those that were written")
)

// readParts returns what the parts of a term hold, one after another.
func (t *ConfigMapTerms) readParts(ctx context.Context, term uint64, number string) ([]byte, error) {
	parts, err := strconv.Atoi(number)
	if err != nil || parts < 0 || parts > maxParts {
		return nil, errParts
	}
	data := make([][]byte, parts)
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(partsAtOnce)
	for i := range data {
		reading.Go(func() error {
			part, err := t.client.Get(ctx, partName(term, i), metav1.GetOptions{})
			if err == nil {
				data[i] = part.BinaryData[ledgerKey]
			}
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(data...), nil
}

// Clear implements TermStore.
func (t *ConfigMapTerms) Clear(ctx context.Context, term uint64) error {
	one := metav1.ListOptions{LabelSelector: partLabel, Limit: 1} // each may have a megabyte
	for {
		found, err := t.client.List(ctx, one)
		if err != nil {
			return fmt.Errorf("find the parts of earlier ledgers: %w", err)
		}
		for _, part := range found.Items {
			of, err := strconv.ParseUint(part.Labels[partLabel], 10, 64)
			if err != nil || of >= term {
				continue // nobody's, or a successor's
			}
			if err := t.client.Delete(ctx, part.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete ConfigMap %s: %w", part.Name, err)
			}
		}
		if one.Continue = found.Continue; one.Continue == "" {
			return nil
		}
	}
}

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
	return loadConfigMap(ctx, b.client, birthsName(shard), birthsKey)
}

// Save implements BirthStore.
func (b *ConfigMapBirths) Save(ctx context.Context, shard int, data []byte, version string) (string, error) {
	return saveConfigMap(ctx, b.client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: birthsName(shard), ResourceVersion: version},
		BinaryData: map[string][]byte{birthsKey: data},
	})
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
	return loadConfigMap(ctx, j.client, countersName(policy), countersKey)
}

// Save implements JournalStore.
func (j *ConfigMapJournals) Save(ctx context.Context, policy string, data []byte, version string) (string, error) {
	return saveConfigMap(ctx, j.client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: countersName(policy), ResourceVersion: version,
			Labels: map[string]string{CountersLabel: CountersValue}, Annotations: map[string]string{PolicyAnnotation: policy},
		},
		BinaryData: map[string][]byte{countersKey: data},
	})
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

// loadConfigMap returns the data below a key of a ConfigMap and its version, "" when there is
// none.
func loadConfigMap(ctx context.Context, client corev1client.ConfigMapInterface, name, key string) ([]byte, string, error) {
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	return found.BinaryData[key], found.ResourceVersion, nil
}

// saveConfigMap replaces the ConfigMap that still has the version of next, or makes it when
// that is "", and returns the new version.
func saveConfigMap(ctx context.Context, client corev1client.ConfigMapInterface, next *corev1.ConfigMap) (string, error) {
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

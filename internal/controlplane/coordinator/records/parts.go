package records

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
)

const (
	// MaxObject keeps a ConfigMap below the API server's limit of 1 MiB.
	MaxObject = 1000 << 10
	// maxParts bounds what a hand-over writes: about two million keys, more than fit
	// into the memory of a controller that is not given more than by default.
	maxParts = 40
	// MaxHandover is what a hand-over has room for, in bytes.
	MaxHandover = (1 + maxParts) * MaxObject

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
func (t *Terms) writeParts(ctx context.Context, term uint64, rest []byte) (int, error) {
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

func (t *Terms) writePart(ctx context.Context, part *corev1.ConfigMap) error {
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
func (t *Terms) complete(ctx context.Context, recorded *corev1.ConfigMap, h *Handover) error {
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
func (t *Terms) readParts(ctx context.Context, term uint64, number string) ([]byte, error) {
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

// Clear implements coordinator.TermStore.
func (t *Terms) Clear(ctx context.Context, term uint64) error {
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

package memory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Ledger is everything a sealed store knew: what one leader hands to the next.
type Ledger struct {
	sealed   limiter.Instant
	memory   limiter.Memory
	counters []counter
}

// Sealed returns the instant of the seal on the predecessor's clock: the floor of
// the successor's clock.
func (l *Ledger) Sealed() limiter.Instant { return l.sealed }

// Len returns the number of counters.
func (l *Ledger) Len() int { return len(l.counters) }

// A TooBigError says that a ledger does not fit where it was to be kept. The
// successor then starts without one, which costs every open window.
type TooBigError struct{ Bytes, Max int }

// Error names both sizes.
func (e *TooBigError) Error() string {
	return fmt.Sprintf("the ledger has %d bytes, more than %d", e.Bytes, e.Max)
}

// Export seals the store and returns its ledger in the encoding that Decode
// reads. The error is a *TooBigError when that has more than maxBytes bytes.
func (s *Store) Export(maxBytes int) ([]byte, error) {
	data, err := s.ledger().encode()
	if err != nil {
		return nil, fmt.Errorf("encode the ledger: %w", err)
	}
	if len(data) > maxBytes {
		return nil, &TooBigError{Bytes: len(data), Max: maxBytes}
	}
	return data, nil
}

// ledger seals the store and collects what the successor needs, ordered by key.
func (s *Store) ledger() *Ledger {
	s.Seal()
	l := &Ledger{sealed: s.clock(), memory: s.memory}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, c := range sh.counters {
			if !c.ended(l.sealed) {
				l.counters = append(l.counters, c)
			}
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(l.counters, func(a, b counter) int { return compareKeys(a.key, b.key) })
	return l
}

func compareKeys(a, b store.Key) int {
	return cmp.Or(
		cmp.Compare(a.Scope.Cluster, b.Scope.Cluster),
		cmp.Compare(a.Scope.Namespace, b.Scope.Namespace),
		cmp.Compare(a.Scope.Policy, b.Scope.Policy),
		cmp.Compare(a.Scope.Limit, b.Scope.Limit),
		cmp.Compare(a.Hash, b.Hash),
	)
}

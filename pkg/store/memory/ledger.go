package memory

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Ledger is everything a sealed store knew: what one leader hands to the next.
type Ledger struct {
	sealed    limiter.Instant
	memory    limiter.Memory
	forgotten []Forgotten
	counters  []*counter // by key
}

// Sealed returns the instant of the seal on the predecessor's clock: the floor of
// the successor's clock.
func (l *Ledger) Sealed() limiter.Instant { return l.sealed }

// Len returns the number of counters.
func (l *Ledger) Len() int { return len(l.counters) }

// A TooBigError says that a ledger does not fit where it was to be kept, although
// no counter is left in it. The successor then starts without one, which costs
// every open window.
type TooBigError struct{ Bytes, Max int }

// Error names both sizes.
func (e *TooBigError) Error() string {
	return fmt.Sprintf("the ledger has %d bytes, more than %d", e.Bytes, e.Max)
}

// Export seals the store and returns its ledger in the encoding that Decode
// reads. When that has more than maxBytes bytes, policies are left out, those with
// the most to report first: it returns them, and the successor grants nothing of
// their windows that are open. The error is a *TooBigError when that is not enough.
func (s *Store) Export(maxBytes int) (data []byte, left []Forgotten, err error) {
	l := s.ledger()
	for {
		data, sizes, err := l.encode()
		if err != nil {
			return nil, nil, fmt.Errorf("encode the ledger: %w", err)
		}
		share := min(float64(maxBytes)/float64(len(data)), float64(maxDecoded)/float64(sizes.all))
		if share >= 1 {
			return data, left, nil
		}
		if len(l.counters) == 0 {
			return nil, nil, &TooBigError{Bytes: len(data), Max: maxBytes}
		}
		left = append(left, l.leaveOut(sizes.of, share)...)
	}
}

// leaveOut takes out policies, by their sizes, until only that share of the whole is
// left. It takes out one at least.
func (l *Ledger) leaveOut(sizes map[owner]int, share float64) []Forgotten {
	total := 0
	for _, size := range sizes {
		total += size
	}
	allowed := int(share * float64(total))
	out := map[owner]*Forgotten{}
	for _, o := range slices.SortedFunc(maps.Keys(sizes), func(a, b owner) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), a.compare(b))
	}) {
		if total <= allowed && len(out) > 0 {
			break
		}
		total -= sizes[o]
		out[o] = &Forgotten{Cluster: o.cluster, Namespace: o.namespace, Policy: o.policy, Since: l.sealed}
	}
	l.counters = slices.DeleteFunc(l.counters, func(c *counter) bool {
		f := out[ownerOf(c.key.Scope)]
		if f != nil {
			f.Keys++
		}
		return f != nil
	})
	var left []Forgotten
	for _, o := range slices.SortedFunc(maps.Keys(out), owner.compare) {
		left = append(left, *out[o])
	}
	l.forgotten = append(slices.DeleteFunc(l.forgotten, func(f Forgotten) bool { return out[f.owner()] != nil }), left...)
	return left
}

// ledger seals the store and collects what the successor needs, ordered by key. It
// shares the counters, which no longer change.
func (s *Store) ledger() *Ledger {
	s.Seal()
	l := &Ledger{sealed: s.clock(), memory: s.memory, forgotten: s.Forgotten()}
	of := map[store.Scope][]sortable{}
	for i := range s.shards {
		counters := s.shards[i].counters
		for j := range counters {
			if c := &counters[j]; !c.ended(l.sealed) {
				of[c.key.Scope] = append(of[c.key.Scope], sortable{beginning(c.key.Hash), c})
			}
		}
	}
	for _, scope := range slices.SortedFunc(maps.Keys(of), compareScopes) {
		slices.SortFunc(of[scope], sortable.compare)
		for _, s := range of[scope] {
			l.counters = append(l.counters, s.counter)
		}
	}
	return l
}

// A sortable counter is compared by the beginning of its hash: looking up a million
// counters in memory, twenty times each, would take seconds.
type sortable struct {
	beginning uint64
	*counter
}

func beginning(hash string) uint64 {
	var first [8]byte
	copy(first[:], hash)
	return binary.BigEndian.Uint64(first[:])
}

func (s sortable) compare(o sortable) int {
	if s.beginning != o.beginning {
		return cmp.Compare(s.beginning, o.beginning)
	}
	return strings.Compare(s.key.Hash, o.key.Hash)
}

func compareScopes(a, b store.Scope) int {
	return cmp.Or(ownerOf(a).compare(ownerOf(b)), cmp.Compare(a.Limit, b.Limit))
}

func compareKeys(a, b store.Key) int {
	return cmp.Or(compareScopes(a.Scope, b.Scope), cmp.Compare(a.Hash, b.Hash))
}

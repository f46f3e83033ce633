package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-dev/weir/pkg/policy"
)

// An Edit makes one version of a snapshot of another.
type Edit struct {
	Base, Version string
	// Digest is that of the content of Version.
	Digest []byte
	// Data is a snapshot as policy.Encode writes it, of the entries that Base lacks or has otherwise,
	// and of these alone. Removed are those of Base that Version lacks.
	Data    []byte
	Removed []Name
}

// ErrBase says that an edit cannot be made: what is held is not its base, or does not become what it
// names. The whole of that version is asked for in its place.
var ErrBase = errors.New("the version that the edit begins from is not the one that is held")

// Between returns what makes to of from, which are of the same cluster. The versions are left to be
// filled in. The bytes of to are kept.
func Between(from, to *Content) (Edit, error) {
	if from.cluster != to.cluster {
		return Edit{}, fmt.Errorf("cluster %q became %q", from.cluster, to.cluster)
	}
	changed := policy.Entries{Cluster: to.cluster}
	for i := range to.entries {
		e := &to.entries[i]
		switch {
		case from.has(e):
		case e.Kind == Policy:
			changed.Policies = append(changed.Policies, e.raw)
		case e.Kind == Pools:
			changed.Pools = append(changed.Pools, e.raw)
		default:
			changed.Pool = e.raw
		}
	}
	out := Edit{Digest: to.Digest()}
	for i := range from.entries {
		if _, stays := to.find(from.entries[i].Name); !stays {
			out.Removed = append(out.Removed, from.entries[i].Name)
		}
	}
	var err error
	out.Data, err = json.Marshal(changed)
	return out, err
}

// edited returns the content that the edit makes of c, and its entries that are changed or new. The
// error wraps ErrBase.
func (c *Content) edited(e *Edit) (next *Content, changed *policy.Entries, err error) {
	if changed, err = policy.Split(e.Data); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrBase, err)
	}
	put, err := contentOf(changed)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrBase, err)
	}
	gone := e.removes()
	of := func(a, b *entry) int { return a.compare(b.Name) }
	next = &Content{cluster: put.cluster, entries: merged(c.entries, put.withoutBytes().entries, of, func(e *entry) bool { return gone[e.Name] })}
	if put.cluster != c.cluster || !bytes.Equal(next.Digest(), e.Digest) {
		return nil, nil, fmt.Errorf("%w: another content follows from it", ErrBase)
	}
	return next, changed, nil
}

// removes returns the set of the names that the edit removes.
func (e *Edit) removes() map[Name]bool {
	gone := make(map[Name]bool, len(e.Removed))
	for _, n := range e.Removed {
		gone[n] = true
	}
	return gone
}

// merged returns what is in put, and all of before that is neither gone nor there under the same name.
// All are ordered by compare, one of each.
func merged[T any](before, put []T, compare func(a, b *T) int, gone func(*T) bool) []T {
	out := make([]T, 0, len(before)+len(put))
	for i := range before {
		order := -1 // of the next that is put against this one
		for ; len(put) > 0; put = put[1:] {
			if order = compare(&put[0], &before[i]); order > 0 {
				break
			}
			out = append(out, put[0])
			if order == 0 {
				put = put[1:]
				break
			}
		}
		if order != 0 && !gone(&before[i]) {
			out = append(out, before[i])
		}
	}
	return append(out, put...)
}

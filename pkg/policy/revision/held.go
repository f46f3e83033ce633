package revision

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/policy"
)

// Held is a version of a snapshot that a holder has, compiled. It is immutable, and its zero value holds
// no version.
type Held struct {
	Set     *policy.Set
	Version string
	// Refused are the parts that are not understood. Set has the last good version of each, if there
	// was one.
	Refused policy.Refusals

	content *Content // of all that Set has; nil when that is not all of Version
}

// Whole returns what an encoded snapshot of the version makes of h. Policies that are as they were in h
// are its own, compiled already. For a part that is refused the last good version stays, and so do the
// keys of tokens that the controller has not read.
func (h *Held) Whole(version string, data []byte) (*Held, error) {
	entries, err := policy.Split(data)
	if err != nil {
		return nil, err
	}
	next, refused, err := entries.Decode()
	if err != nil {
		return nil, err
	}
	content, err := contentOf(entries)
	if err != nil || len(refused) > 0 {
		content = nil // it is enforced as far as it is understood, and nothing is built on it
	}
	before := h.snapshot()
	next.KeepKeys(before)
	var changed []policy.Policy
	for i := range next.Policies {
		p := &next.Policies[i]
		if was := h.same(content, p); was != nil {
			*p = *was
		} else {
			changed = append(changed, *p)
		}
	}
	next.Keep(before, refused)
	if content != nil {
		content.withoutBytes()
	}
	return h.become(&Held{Version: version, Refused: refused, content: content}, next, changed)
}

// same returns the policy that h has of p, if the content says that it is the same.
func (h *Held) same(content *Content, p *policy.Policy) *policy.Policy {
	if content == nil {
		return nil
	}
	at, found := content.find(Name{Policy, p.Namespace, p.Name})
	if !found || !h.content.has(&content.entries[at]) {
		return nil
	}
	before := h.snapshot().Policies
	if at, found = slices.BinarySearchFunc(before, *p, comparePolicies); !found {
		return nil
	}
	return &before[at]
}

// Edited returns what the edit makes of h. With an error that wraps ErrBase the whole of its version is
// needed: also when a part is not understood, which whole versions have rules for. A version that h has
// already is made of any: the whole of it may overtake an edit to it.
func (h *Held) Edited(e Edit) (*Held, error) {
	switch {
	case h.content == nil:
		return nil, ErrBase
	case e.Version == h.Version && bytes.Equal(e.Digest, h.content.Digest()):
		return h, nil
	case e.Base != h.Version:
		return nil, ErrBase
	}
	content, entries, err := h.content.edited(&e)
	if err != nil {
		return nil, err
	}
	put, refused, err := entries.Decode()
	if err == nil && len(refused) > 0 {
		err = refused
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBase, err)
	}
	before := h.snapshot()
	put.KeepKeys(before)
	gone := e.removes()
	next := policy.Snapshot{Cluster: before.Cluster, Pool: put.Pool}
	next.Policies = merged(before.Policies, put.Policies,
		func(a, b *policy.Policy) int { return comparePolicies(*a, *b) },
		func(p *policy.Policy) bool { return gone[Name{Policy, p.Namespace, p.Name}] })
	next.Pools = merged(before.Pools, put.Pools,
		func(a, b *policy.Pool) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		},
		func(p *policy.Pool) bool { return gone[Name{Pools, p.Namespace, p.Name}] })
	if p := before.Pool; p != nil && next.Pool == nil && !gone[Name{Pool, p.Namespace, p.Name}] {
		next.Pool = p
	}
	if len(next.Policies)+len(next.Pools)+pools(next.Pool) != len(content.entries) {
		return nil, fmt.Errorf("%w: there are two pools of all requests", ErrBase)
	}
	out, err := h.become(&Held{Version: e.Version, content: content}, next, put.Policies)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBase, err)
	}
	return out, nil
}

// pools returns how many pools of all requests there are.
func pools(p *policy.Pool) int {
	if p == nil {
		return 0
	}
	return 1
}

func comparePolicies(p, q policy.Policy) int {
	return cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name))
}

// become compiles s as what next holds. All policies but the changed ones are those of h.
func (h *Held) become(next *Held, s policy.Snapshot, changed []policy.Policy) (*Held, error) {
	set := h.Set
	if set == nil {
		set = new(policy.Set)
	}
	var err error
	next.Set, err = set.Recompile(s, func(p *policy.Policy) bool {
		_, found := slices.BinarySearchFunc(changed, *p, comparePolicies)
		return found
	})
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return next, nil
}

func (h *Held) snapshot() *policy.Snapshot {
	if h.Set == nil {
		return new(policy.Snapshot)
	}
	return &h.Set.Snapshot
}

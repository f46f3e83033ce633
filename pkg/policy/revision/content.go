package revision

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/policy"
)

// Kind says where in a snapshot an entry is.
type Kind string

// The kinds.
const (
	Policy Kind = "policy"
	Pool   Kind = "pool"  // the one of all requests
	Pools  Kind = "pools" // one of those that match some
)

// A Name names an entry of a snapshot.
type Name struct {
	Kind            Kind
	Namespace, Name string
}

func (n Name) compare(m Name) int {
	return cmp.Or(cmp.Compare(n.Kind, m.Kind), cmp.Compare(n.Namespace, m.Namespace), cmp.Compare(n.Name, m.Name))
}

// A Content is the entries that an encoded snapshot has, by the digests of their bytes. It is immutable.
type Content struct {
	cluster string
	entries []entry // ordered by name, one of each
}

type entry struct {
	Name
	digest [sha256.Size]byte
	raw    json.RawMessage // nil when it is not kept
}

// ContentOf returns the content of an encoded snapshot of this version, and keeps its bytes.
func ContentOf(data []byte) (*Content, error) {
	e, err := policy.Split(data)
	if err != nil {
		return nil, err
	}
	return contentOf(e)
}

// contentOf returns the content of entries, or an error when one of them has no name, or that of
// another, or there is more beside them.
func contentOf(e *policy.Entries) (*Content, error) {
	if e.Unknown() {
		return nil, errors.New("there are fields of a later version")
	}
	c := &Content{cluster: e.Cluster, entries: make([]entry, 0, len(e.Policies)+len(e.Pools)+1)}
	for _, raw := range e.Policies {
		if err := c.add(Policy, raw); err != nil {
			return nil, err
		}
	}
	if e.Pool != nil {
		if err := c.add(Pool, e.Pool); err != nil {
			return nil, err
		}
	}
	for _, raw := range e.Pools {
		if err := c.add(Pools, raw); err != nil {
			return nil, err
		}
	}
	return c, c.sort()
}

// sort orders the entries, and fails when there are two of a name.
func (c *Content) sort() error {
	slices.SortFunc(c.entries, func(a, b entry) int { return a.compare(b.Name) })
	for i := 1; i < len(c.entries); i++ {
		if c.entries[i].Name == c.entries[i-1].Name {
			return fmt.Errorf("there are two of %v", c.entries[i].Name)
		}
	}
	return nil
}

func (c *Content) add(kind Kind, raw json.RawMessage) error {
	var of struct{ Namespace, Name string }
	if err := json.Unmarshal(raw, &of); err != nil {
		return fmt.Errorf("a %s has no name: %w", kind, err)
	}
	c.entries = append(c.entries, entry{Name{kind, of.Namespace, of.Name}, sha256.Sum256(raw), raw})
	return nil
}

// Digest names the content: the cluster, and which entries there are, whose bytes have their names.
func (c *Content) Digest() []byte {
	all := make([]byte, 0, binary.MaxVarintLen64+len(c.cluster)+len(c.entries)*(len(Policy)+1+sha256.Size))
	all = append(binary.AppendUvarint(all, uint64(len(c.cluster))), c.cluster...)
	for i := range c.entries {
		e := &c.entries[i]
		all = append(append(append(all, e.Kind...), 0), e.digest[:]...)
	}
	sum := sha256.Sum256(all)
	return sum[:]
}

// has reports whether c, which may be nil, has the very entry.
func (c *Content) has(e *entry) bool {
	if c == nil {
		return false
	}
	at, found := c.find(e.Name)
	return found && c.entries[at].digest == e.digest
}

func (c *Content) find(n Name) (at int, found bool) {
	return slices.BinarySearchFunc(c.entries, n, func(e entry, n Name) int { return e.compare(n) })
}

// withoutBytes returns c without the bytes of its entries, which nobody else may be reading.
func (c *Content) withoutBytes() *Content {
	for i := range c.entries {
		c.entries[i].raw = nil
	}
	return c
}

package rls

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Bounds of a call. Envoy's configuration decides them, not the requests it serves.
const (
	maxDomain      = 512
	maxDescriptors = 16
	maxEntries     = 16 // of a descriptor
)

// A request is what a call asks.
type request struct {
	domain      string
	hits        uint32
	descriptors []descriptor // the first maxDescriptors
	count       int          // of descriptors
}

// A descriptor is one of a call.
type descriptor struct {
	entries  []policy.Entry // the first maxEntries
	count    int            // of entries
	hits     uint64
	hasHits  bool
	hasLimit bool
	negative bool
}

// check returns the descriptors of a call. An error names the field and the cure.
func (r *request) check() ([]enforce.Descriptor, error) {
	switch n := r.count; {
	case len(r.domain) > maxDomain:
		return nil, fmt.Errorf("domain has %d bytes, more than %d: name a policy", len(r.domain), maxDomain)
	case n == 0:
		return nil, fmt.Errorf("descriptors is empty: send 1 to %d", maxDescriptors)
	case n > maxDescriptors:
		return nil, fmt.Errorf("descriptors has %d entries, more than %d: configure fewer rate_limits for the route", n, maxDescriptors)
	}
	ds := make([]enforce.Descriptor, len(r.descriptors))
	for i := range r.descriptors {
		d := &r.descriptors[i]
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("descriptors[%d].%w", i, err)
		}
		ds[i] = enforce.Descriptor{Request: policy.NewDescriptor(d.entries), Hits: r.hitsOf(d)}
	}
	return ds, nil
}

func (d *descriptor) check() error {
	switch n := d.count; {
	case d.negative:
		return errors.New("is_negative_hits is set, but nobody may add to a limit: remove it")
	case n == 0:
		return fmt.Errorf("entries is empty: send 1 to %d", maxEntries)
	case n > maxEntries:
		return fmt.Errorf("entries has %d entries, more than %d: configure fewer actions", n, maxEntries)
	}
	for i := range d.entries {
		if d.entries[i].Key == "" {
			return fmt.Errorf("entries[%d].key is empty: name it", i)
		}
	}
	return nil
}

// hitsOf returns what the descriptor costs. For the whole call 0 means that nothing is
// said, which is 1; a descriptor can say 0. More than any limit admits is not an error:
// Envoy might take the number from a request, and let pass what is not decided.
func (r *request) hitsOf(d *descriptor) int64 {
	if d.hasHits {
		return int64(min(d.hits, uint64(limiter.MaxLimit)+1))
	}
	return max(int64(r.hits), 1)
}

// overrides reports whether a descriptor says what its limit is.
func (r *request) overrides() bool {
	return slices.ContainsFunc(r.descriptors, func(d descriptor) bool { return d.hasLimit })
}

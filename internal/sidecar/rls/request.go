package rls

import (
	"errors"
	"fmt"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

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

// read returns the descriptors of a call. An error names the field and the cure.
func read(in *ratelimitv3.RateLimitRequest) ([]enforce.Descriptor, error) {
	switch n := len(in.GetDescriptors()); {
	case len(in.GetDomain()) > maxDomain:
		return nil, fmt.Errorf("domain has %d bytes, more than %d: name a policy", len(in.GetDomain()), maxDomain)
	case n == 0:
		return nil, fmt.Errorf("descriptors is empty: send 1 to %d", maxDescriptors)
	case n > maxDescriptors:
		return nil, fmt.Errorf("descriptors has %d entries, more than %d: configure fewer rate_limits for the route", n, maxDescriptors)
	}
	ds := make([]enforce.Descriptor, len(in.GetDescriptors()))
	for i, d := range in.GetDescriptors() {
		entries, err := readEntries(d)
		if err != nil {
			return nil, fmt.Errorf("descriptors[%d].%w", i, err)
		}
		ds[i] = enforce.Descriptor{Request: policy.NewDescriptor(entries), Hits: hits(in, d)}
	}
	return ds, nil
}

func readEntries(d *commonv3.RateLimitDescriptor) ([]policy.Entry, error) {
	switch n := len(d.GetEntries()); {
	case d.GetIsNegativeHits():
		return nil, errors.New("is_negative_hits is set, but nobody may add to a limit: remove it")
	case n == 0:
		return nil, fmt.Errorf("entries is empty: send 1 to %d", maxEntries)
	case n > maxEntries:
		return nil, fmt.Errorf("entries has %d entries, more than %d: configure fewer actions", n, maxEntries)
	}
	entries := make([]policy.Entry, len(d.GetEntries()))
	for i, e := range d.GetEntries() {
		if e.GetKey() == "" {
			return nil, fmt.Errorf("entries[%d].key is empty: name it", i)
		}
		entries[i] = policy.Entry{Key: e.GetKey(), Value: e.GetValue()}
	}
	return entries, nil
}

// hits returns what the descriptor costs. For the whole call 0 means that nothing is
// said, which is 1; a descriptor can say 0. More than any limit admits is not an error:
// Envoy might take the number from a request, and let pass what is not decided.
func hits(in *ratelimitv3.RateLimitRequest, d *commonv3.RateLimitDescriptor) int64 {
	if own := d.GetHitsAddend(); own != nil {
		return int64(min(own.GetValue(), uint64(limiter.MaxLimit)+1))
	}
	return max(int64(in.GetHitsAddend()), 1)
}

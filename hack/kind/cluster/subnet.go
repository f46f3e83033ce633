package cluster

import (
	"errors"
	"fmt"
	"net/netip"
)

// candidates are the ranges that clusters take their pods' addresses from:
// kind's own default and those after it.
func candidates(yield func(netip.Prefix) bool) {
	for second := 244; second <= 255; second++ {
		if !yield(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(second)}), 16)) {
			return
		}
	}
}

// choose returns a range that overlaps none of those taken, or the wanted one
// when it does not.
func choose(wanted netip.Prefix, taken []netip.Prefix) (netip.Prefix, error) {
	if wanted.IsValid() {
		if other, ok := overlapping(wanted, taken); ok {
			return netip.Prefix{}, fmt.Errorf("cluster.Config.Pods %s overlaps %s, which is in use on this machine: choose another range, or none", wanted, other)
		}
		return wanted, nil
	}
	for candidate := range candidates {
		if _, ok := overlapping(candidate, taken); !ok {
			return candidate, nil
		}
	}
	return netip.Prefix{}, errors.New("every range for pods overlaps a network of this machine: delete a cluster, or set cluster.Config.Pods")
}

func overlapping(prefix netip.Prefix, others []netip.Prefix) (netip.Prefix, bool) {
	for _, other := range others {
		if prefix.Overlaps(other) {
			return other, true
		}
	}
	return netip.Prefix{}, false
}

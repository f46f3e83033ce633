package redis

import (
	"fmt"
	"hash/fnv"

	"github.com/weir-dev/weir/pkg/store"
)

// partitions is how many guards there are. In a cluster every partition is one
// hash slot, so it bounds over how many nodes the counters spread; it is part of
// the layout, since a counter that changed its partition would start anew.
const partitions = 64

// partition returns the number of the partition that key is in.
func partition(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return h.Sum32() % partitions
}

// keysOf returns the Redis keys of a counter and of its partition's guard. They
// share a hash tag, so a cluster keeps them together.
func keysOf(key store.Key) []string {
	k := key.String()
	p := partition(k)
	return []string{fmt.Sprintf("weir:{%d}:%s", p, k), guardKey(p)}
}

// valueKeysOf returns the Redis keys of a value of Update and of its partition's
// guard.
func valueKeysOf(key store.Key) []string {
	k := key.String()
	p := partition(k)
	return []string{fmt.Sprintf("weir:{%d}:value:%s", p, k), guardKey(p)}
}

func guardKey(p uint32) string { return fmt.Sprintf("weir:{%d}:memory", p) }

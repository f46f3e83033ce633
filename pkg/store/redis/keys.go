package redis

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/store"
)

// partitions is how many guards there are. In a cluster every partition is one
// hash slot, so it bounds over how many nodes the counters spread; it is part of
// the layout, since a counter that changed its partition would start again.
const partitions = 64

// prefixes are how the keys of a partition begin. They hold a hash tag, so a cluster
// keeps them together.
var prefixes = func() (list [partitions]string) {
	for p := range list {
		list[p] = fmt.Sprintf("weir:{%d}:", p)
	}
	return list
}()

// guardKeys are the keys of the guards.
var guardKeys = func() (list [partitions]string) {
	for p, prefix := range prefixes {
		list[p] = prefix + "memory"
	}
	return list
}()

// commonEnds is the key of the ends of counters of all partitions, which lua/batch.lua
// made on a single server.
const commonEnds = "weir:{0}:all:ends"

// endsKeys are the keys of the ends of other counters; see lua/wire.lua. Their script makes
// them from guardKeys.
var endsKeys = func() (list [partitions]string) {
	for p, prefix := range prefixes {
		list[p] = prefix + "ends"
	}
	return list
}()

// partition returns the number of the partition that key is in, by FNV-1a.
func partition(key string) uint32 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return h % partitions
}

// counterKeyOf returns the Redis key of a counter, and its partition.
func counterKeyOf(key store.Key) (counter string, p uint32) {
	k := key.String()
	p = partition(k)
	return prefixes[p] + k, p
}

// valueKeysOf returns the Redis keys of a value of Update and of its partition's
// guard.
func valueKeysOf(key store.Key) []string {
	k := key.String()
	p := partition(k)
	return []string{prefixes[p] + "value:" + k, guardKeys[p]}
}

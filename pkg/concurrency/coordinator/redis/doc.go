// Package redis coordinates concurrency pools in Redis 7 or newer, alone, behind
// Sentinel, or as a cluster, through a store of package store/redis.
//
// One beat is one script call, so one round trip, by the server's clock. The script in
// lua/ is the Step of pkg/concurrency/pool, held to it by fuzzing. A pool is a hash
// and three sorted sets in one hash slot: a beat costs a few commands, each of time
// logarithmic in the number of holders, and nothing is read or written of the others.
//
// # What is remembered
//
// A memory belongs to one instance of a server, which is known by its replication ID:
// that is new with every start of the process and every promotion. A beat begins
// another when it finds the memory of another instance, none, one with a part
// evicted, or one that is older than what the holder has seen. Its term is the
// server's time in microseconds, or one more than the largest term known of the pool
// when that is larger, so it is above all before. For Params.Quarantine it grants no
// more than holders still use: a restart, a failover, a restore, a flush and a clock
// that was set back before one of them over-grant nothing.
//
// The first pool of all looks like one that was lost. So every pool begins with a
// quarantine, and one that nobody asked for in an hour is forgotten and does so
// again: its pods admit nothing for one Params.Quarantine, which is when the longest
// lease ends.
//
// # What is not
//
// Two primaries during a split brain both divide the limit; a holder that has heard
// of the later one refuses the earlier. Shares end by the server's clock, which is
// not a monotonic one: when it is set forward by more than the holders' margin,
// shares that are in use may be granted again; while one that was set back catches
// up, shares of the dead do not end. Holders that are deleted by hand are not noticed
// unless the numbers of the sorted sets show.
//
// # Permissions
//
// Besides what package store/redis needs, a restricted user needs: +hget +hset +hdel
// +zadd +zrem +zrange +zcard +zcount +del +pexpireat.
package redis

// Package redis is the store that keeps counters in Redis 7 or newer, alone,
// behind Sentinel, as a cluster, or behind a service that is reached over HTTP.
//
// A decision is made by a script, in one round trip. The scripts in lua/ are the Step
// of pkg/limiter, held to it by fuzzing, and decide by the server's clock. They read
// and write one string per counter. One decides most calls, and for many
// counters in one call: those that were asked for while the call before was under way.
// It leaves rare cases, such as several rates, to the other one, which decides anything.
//
// # What is remembered
//
// Keys are spread over 64 partitions, each with a guard. It says since when the serving
// instance remembers every grant: its volatile memory. An instance is known by its
// replication ID, which is new with every start of the process and every promotion;
// FLUSHALL and SWAPDB take the guards away with the counters. In each case windows that
// had already begun when the loss is noticed grant nothing. Any decision notices it;
// callers that may ask for none, because they remember being refused, call Refresh. A
// limit that was put in force in the present memory has forgotten nothing, and its
// windows grant however old they are: limiter.Retention.Born.
//
// The guard also says since when nothing was lost at all: the durable memory. It
// outlives an instance that is restarted, when all of this is so, and a new one begins
// otherwise:
//
//   - the instance was seen to lose nothing when it ends: a single server with
//     appendonly yes, appendfsync always and no-appendfsync-on-rewrite no. Warm and Probe
//     look, and note it in the guards for as long as the instance lives;
//
//   - no replica had a copy, for one that is restarted as a primary looks like the primary
//     itself. A promoted one does not: it has the primary's replication ID as its second;
//
//   - the server is not a cluster's node: a partition that moved looks like a restart.
//
//     retention                      windows that began before ... grant nothing
//     volatile                       the volatile memory
//     durable                        the durable memory
//     durable and Resume             nothing: each loss may admit one more limit
//
// So with appendfsync everysec, with snapshots, and after a failover, durable counters
// wait for the end of the window or resume with what is left of the counts.
//
// # Over HTTP
//
// OpenREST reaches a managed service by its REST API; package rest has the protocol. The
// scripts are the same after a preamble, which decodes their arguments. A service may hide
// its replication ID. It is then known by its leader, if INFO names one as primary_member,
// and otherwise for one instance as long as its guards are there: a failover that lost
// grants goes unnoticed, which lowers the guarantee. Update needs WATCH, which there is not
// over HTTP.
//
// # Clocks
//
// Time is the server's. The guard holds the newest instant served, so nothing is granted
// while a clock that was set back catches up. A server that forgot this, too, is found
// behind by callers that spoke to it before: each call carries the newest time that the
// server's clock has certainly reached, and the memory that the caller spoke to last.
// Windows that the memory before may have served are not served again to this caller,
// and the guard notes up to when for all others. Until the first such call, callers that
// speak to the server for the first time cannot know.
//
// No counter is dropped by the clock alone. It is listed with its end when it is made.
// For every 64 counters that a store made, and with each Refresh, counters that have ended
// are dropped, once the guards of their partitions know of an instant at which they had.
// So beside the counters that still count there are about 64 a store, of about 500 bytes
// each; in a cluster, and of what the rarer script makes, about 64 a partition, too. The
// server itself drops what nobody swept 32 days after its end, which is when nothing asks
// any more.
//
// # What is not
//
// Two primaries during a split brain both grant. So may an old primary that Sentinels
// promote once more before they have made it a replica, until a holder that the one in
// between answered asks it: from then on nobody is granted anything of the windows that one
// served. Eviction forgets single counters, so any
// maxmemory-policy but noeviction lowers the guarantee. A counter deleted by hand starts
// again. A data directory that is put back from a backup, or was left from another time,
// looks like a restart: delete the keys weir:*:memory when the server is up. So does
// SWAPDB there and back: what was granted in between is in the other database. A server
// whose appendfsync is changed while it runs is believed until the next Probe. A clock
// that is ahead by more than 32 days beyond a counter's end, while nobody asks, makes the
// server drop it unseen. A clock that was far ahead while somebody asked refuses
// everything until it has caught up again; when it was an error, delete the keys
// weir:*:memory and restart the holders. A primary that has been without its replicas
// for repl-backlog-ttl, an hour unless configured, takes a new replication ID: that looks
// like a failover; repl-backlog-ttl 0 prevents it.
//
// Scripts of versions that know of no durable memory may serve beside these. They drop it
// from the guards that they write, which then say what is volatile. Counters that they
// write expire by the server's clock.
//
// # Permissions
//
// A restricted user needs: ~weir:* +eval +evalsha +info +time +mget +get +set +del +zadd
// +zrem +zrangebyscore +pttl +pexpireat +hello +client|setname, and +config|get, without
// which no restart is known to lose nothing; of a cluster +cluster|slots too, and for
// Update +watch +unwatch +multi +exec.
package redis

// Package redis is the store that keeps counters in Redis 7 or newer, alone,
// behind Sentinel, or as a cluster.
//
// One decision is one script call, so one round trip. The script in lua/ is the Step
// of pkg/limiter, held to it by fuzzing, and decides by the server's clock. It reads
// and writes one string per counter.
//
// # What is remembered
//
// Keys are spread over 64 partitions, each with a guard that says since when
// the serving instance remembers every grant. An instance is told apart by its
// replication ID, which is new with every start of the process and every
// promotion; FLUSHALL deletes the guards with the counters. In each case windows
// that had already begun when the loss is noticed grant nothing: a restart, a
// failover, a restore or a flush costs one window and over-grants nothing. Any
// decision notices it; callers that may ask for none, because they remember being
// refused, call Refresh. The guard also holds the newest instant served, so
// nothing is granted while a clock that was set back catches up.
//
// # What is not
//
// Two primaries during a split brain both grant. Eviction forgets single
// counters, so any maxmemory-policy but noeviction lowers the guarantee. A
// replica's clock that trails its primary's by more than a failover takes may
// serve the primary's last window again. A counter deleted by hand starts anew,
// and so does one that expires while the server's clock is ahead for longer than
// a window and is then set back. A primary that has been without its replicas for
// repl-backlog-ttl, an hour unless configured, takes a new replication ID: that looks
// like a failover and costs a window too.
//
// # Permissions
//
// A restricted user needs: ~weir:* +eval +evalsha +info +time +mget +get +set +hello
// +client|setname; of a cluster +cluster|slots too, and for Update +watch +unwatch
// +multi +exec.
package redis

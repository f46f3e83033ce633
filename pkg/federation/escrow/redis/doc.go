// Package redis keeps escrows in Redis 7 or newer, alone, behind Sentinel, or as a
// cluster, through a store of package store/redis: for a region whose processes share
// what it was granted.
//
// One command is one script call, so one round trip, by the server's clock. The script
// in lua/ is the Step of pkg/federation/escrow, held to it by fuzzing. It reads and
// writes one string.
//
// # What is remembered
//
// A memory belongs to one instance of a server, which is known by its replication ID:
// that is new with every start of the process and every promotion. A command begins
// another when it finds the memory of another instance, or none: with another name,
// under which nothing was granted yet. Earlier grants are forfeited, and slices are
// used only of windows that begin later: a restart, a failover, a restore and a flush
// hand on nothing twice.
//
// # What is not
//
// Two primaries during a split brain are two escrows: what each hands on was granted
// to it, but both may use the slice. A memory that was restored within one instance
// by hand is not noticed. The server's clock is not a monotonic one: see package
// escrow.
//
// # Permissions
//
// The permissions that package store/redis needs are enough.
package redis

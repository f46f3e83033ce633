// Package redis keeps federated budgets in Redis 7 or newer, alone, behind Sentinel, or
// as a cluster, through a store of package store/redis.
//
// One command is one script call, so one round trip, by the server's clock. The script
// in lua/ is the Step of pkg/federation/ledger, held to it by fuzzing. A budget is one
// hash: a command reads and writes the standings of all members, the account of one
// holder, and nothing of the others or of windows that are over.
//
// # What is remembered
//
// A memory belongs to one instance of a server, which is known by its replication ID:
// that is new with every start of the process and every promotion. A command begins
// another when it finds the memory of another instance, none, or one that is older than
// what the holder has seen. Windows that had begun by then grant nothing. So a restart, a
// failover, a restore, a flush, and an eviction, each cost the open window and over-grant
// nothing. The term of a memory is the server's time in microseconds, or one more than
// the largest term known of the budget when that is larger.
//
// The first command of all finds no memory, either. Members that know that it is the first
// vouch for the one that begins then (ledger.Command.Born), and it grants at once.
// Otherwise a budget begins with its second window. One that nobody asked for in 62 days
// is forgotten and does so again.
//
// # What is not
//
// Two primaries during a split brain both grant. Slices that members were sent and that
// a flush lost are taken to be what the parameters say; a holder says itself what its
// member was sent. Fields of the hash that are deleted by hand are not noticed.
//
// # Permissions
//
// Besides what package store/redis needs, a restricted user needs: +hget +hset +hdel
// +hkeys +hgetall +pexpireat.
package redis

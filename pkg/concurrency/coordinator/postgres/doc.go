// Package postgres coordinates concurrency pools in Postgres 14 or newer, through a
// store of package store/postgres.
//
// One beat is one function call, so one round trip: the function takes an advisory lock
// of the pool, then reads clock_timestamp(), and then does what the Step of
// pkg/concurrency/pool does; fuzzing holds it to the Go. The functions stand in sql/.
// A pool is a row, and so is each holder. A beat writes both and no index. It reads
// those of the other holders only when something hangs on all of them: when its opinion
// changed, when the first of them may have expired, and for a share by demand. With a
// thousand holders that is about as long as all the rest.
//
// The Go Step itself, run by the holder on a copy of the pool, would need a second
// round trip while everybody else waits, and for any holder that hangs in between.
//
// # What is remembered
//
// The tables are unlogged, as those of package store/postgres are and for the same
// reason: every recovery empties them. A memory belongs to one start of the server. A
// beat begins another when it finds that of another start, none, one that another
// transaction wrote than it says (a loaded dump), or one that is older than what the
// holder has seen. Its term is the server's time in microseconds, or one more than the
// largest term known of the pool when that is larger, so it is above all before. For
// Params.Quarantine it grants no more than holders still use: a crash, a restart, the
// promotion of a standby and a restore over-grant nothing.
//
// The first pool of all looks like one that was lost. So every pool begins with a
// quarantine, in which its pods admit nothing. Pools that nobody asked for in an hour
// are dropped when another begins.
//
// # What is not
//
// Two primaries during a split brain both divide the limit; a holder that has heard
// of the later one refuses the earlier. Shares end by the server's clock, which is not
// a monotonic one: when it is set forward by more than the holders' margin, shares
// that are in use may be granted again; while one that was set back catches up, shares
// of the dead do not end. Rows that are changed or deleted by hand (TRUNCATE and DROP
// are noticed), tables that are set to LOGGED, and pg_resetwal are not noticed.
package postgres

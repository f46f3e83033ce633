// Package postgres is the store that keeps counters in Postgres 14 or newer.
//
// One decision is one statement, so one round trip: a function that locks the
// counter's row, then reads clock_timestamp(), and then does what pkg/limiter's Step
// does, in integers; fuzzing holds it to the Go. The functions stand in sql/, in the
// files and under the names of the Go. The usual case of one rate whose window is
// open, or of one bucket, has a short cut in sql/steady.sql.
//
// Most takes find one open window with enough left. They are decided before any
// function is called, by the UPDATE in sql/count.sql: a decision by the functions
// leaves in the row from when until when only its count can change, and for whom. Step
// makes the answer of the count that the UPDATE returns. When it finds no such row,
// which is so for the first take of a window and the last, the functions are a second
// round trip.
//
// Takes of volatile counters that come while others are under way share a statement, those
// of one limit each. Its function, in sql/together.sql, decides them in one transaction: those of counters that
// are new by one statement, those of counters whose window has ended by two, and the others one after the
// other, as the functions for one do. It holds their rows until all are decided, so it gives up soon
// where another transaction holds one of them. It has done nothing then, and each take is decided for
// itself, as it is when the server answers with any other error.
//
// # What is made in the database
//
// The first call to a database makes the schema weir: tables, which all builds
// share, and functions whose names end in a hash of their text, so that sidecars of
// different builds work on the same counters with their own functions. A build that
// needs more tables than it finds adds them, in use. Old functions stay until the
// schema is dropped. A user without the right to make them gets an error that says
// what an administrator has to run.
//
// # What is remembered of volatile counters
//
// Their tables are unlogged. That is what makes them safe, not only cheap: Postgres
// empties unlogged tables in every recovery. So no count is left that could miss a grant
// after a crash of the server or of one of its processes, the promotion of a standby,
// and the restore of a base backup, a snapshot or a point in time. Beside the counters
// stands one row that says since when the server remembers. A decision that finds none
// writes it again, and windows that had begun by then grant nothing. The same holds when
// it finds a row of an earlier start of the server (a copy of its stopped files looks
// like that, and so does a mere restart), or one that another transaction wrote than it
// says (a loaded dump). So each of these costs the open windows and over-grants nothing.
// Any decision notices; callers that may ask for none, because they remember being
// refused, call Refresh.
//
// The clock of a server that lost them may have been set back, too. So a logged row leases
// the clock ahead by a second, before any window is served that begins later. It is
// renewed at half, at most twice a second, by one synchronous commit. A memory begins
// after the lease of the one before: a loss costs up to a second of windows more.
//
// # What is remembered of durable counters
//
// Their tables are logged, and a decision is answered when its commit is on the disk of
// the server, and of the standbys that synchronous_standby_names lists. A crash or a
// restart loses none. A new memory begins, which windows that had begun by then
// have to wait for unless limiter.Retention.Resume is set, when it may lack grants:
//
//   - after a promotion, or a recovery to a point in time: the row notes the timeline
//   - in another server, from a dump or by pg_upgrade: it notes the system identifier
//   - after TRUNCATE, DROP, or a dump that is loaded in place of the table: a trigger
//     notes the first, the row the table's OID for the others
//   - after a dump that is loaded with the row: it notes the transaction that wrote it
//
// A key has a counter in one of the tables only. When an edit changes the retention of a
// limit, a decision moves the row into its own table with its count. Grants that the
// volatile memory had forgotten by then stay unknown: the row, or the first one of a key
// that has none, says since when its grants are known. For that weir.volatile lists the
// limits that had volatile counters, one short row each. An edit is the only time at
// which a sidecar that is behind may move a row back; the count is then as volatile as it
// asks.
//
// # Births, and dropped counters
//
// A limit that was born in the present memory (limiter.Retention.Born) has forgotten
// nothing: its first window is served at once, however long ago that began. Both memories
// are named at random when they begin; Probe returns the names.
//
// Counters that ended are dropped a few at a time when new ones come, and by Refresh.
// Before it drops any, the row notes the instant, and nothing is decided for earlier
// ones: a clock that was set back cannot serve a window again whose count is gone.
//
// A store sends with each command the newest instant that the server's clock has shown
// it (limiter.Command.Floor), so that the store itself still knows what the server
// forgot.
//
// # What is not
//
// Two primaries during a split brain both grant. Counters that are changed or deleted by
// hand (TRUNCATE and DROP are noticed), tables that are set to LOGGED or UNLOGGED (Probe
// sees it), and pg_resetwal are not noticed. For durable counters neither is a server that
// is put back to an earlier state of its files without a recovery to a point in time: a
// snapshot of its disk, a copy, or a base backup without recovery.signal. A restore with
// recovery.signal is noticed.
//
// A clock that was far ahead, if only for a moment, may have leased, opened windows and
// dropped counters up to then: nothing is granted until that instant. When the clock is
// right again and that is too long, run TRUNCATE weir.counters, weir.counters_durable;
// DELETE FROM weir.memory_durable; and restart the sidecars, which remember it as well.
//
// # Connections
//
// A store keeps at most four connections, one while it is only refreshed. Size
// max_connections for one or two of each sidecar, or let the controller ask for them.
// A pooler must pool by session: the store prepares statements and sets the
// connection's parameters.
package postgres

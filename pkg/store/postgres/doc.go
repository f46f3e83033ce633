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
// # What is made in the database
//
// The first call to a database makes the schema weir: two tables, which all builds
// share, and functions whose names end in a hash of their text, so that sidecars of
// different builds work on the same counters with their own functions. Old functions
// stay until the schema is dropped, which loses no more than the open windows. A user
// without the right to make them gets an error that says what an administrator has to
// run.
//
// # What is remembered
//
// The tables are unlogged. That is what makes them safe, not only cheap: Postgres
// empties unlogged tables in every recovery, so after a crash of the server or of one
// of its processes, the promotion of a standby, and the restore of a base backup, a
// snapshot or a point in time, there is no count left that could miss a grant. Logged
// tables would have to wait for the disk, and for standbys, in each decision, and
// would still come back too old from a backup. Beside the counters stands one row
// that says since when the server remembers. Who finds none, one of an earlier start
// of the server (a copy of its stopped files looks like that, and so does a mere
// restart), or one that another transaction wrote than it says (a loaded dump),
// writes it anew, and windows that had begun by then grant nothing. So each of these
// costs the open windows and over-grants nothing. Any decision notices; callers that
// may ask for none, because they remember being refused, call Refresh.
//
// Counters that ended are dropped a few at a time when new ones come, and by Refresh.
// Before it drops any, the row notes the instant, and nothing is decided for earlier
// ones: a clock that was set back cannot serve a window again whose count is gone.
//
// # What is not
//
// Two primaries during a split brain both grant. A standby's clock that trails its
// primary's by more than a failover takes may serve the primary's last window again.
// Counters that are changed or deleted by hand (TRUNCATE and DROP are noticed), tables
// that are set to LOGGED, and pg_resetwal are not noticed.
//
// # Connections
//
// A store keeps at most four connections, one while it is only refreshed. Size
// max_connections for one or two of each sidecar, or let the controller ask for them.
// A pooler must pool by session: the store prepares statements and sets the
// connection's parameters.
package postgres

// Package postgres keeps federated budgets in Postgres 14 or newer, through a store of
// package store/postgres.
//
// One command is one function call, so one round trip: the function takes an advisory
// lock of the budget, then reads clock_timestamp(), and then does what the Step of
// pkg/federation/ledger does; fuzzing holds it to the Go. The functions stand in sql/. A
// budget is a row, and so is each standing, each account of the open window and each
// window that is over. A command reads the standings of all members and writes the
// budget, one standing and one account.
//
// # What is remembered
//
// The tables are unlogged, as those of package store/postgres are and for the same
// reason: every recovery empties them. A memory belongs to one start of the server. A
// command begins another when it finds that of another start, none, one that another
// transaction wrote than it says (a loaded dump), or one that is older than what the
// holder has seen. Windows that had begun by then grant nothing. So a crash, a restart,
// the promotion of a standby and a restore each cost the open window and over-grant
// nothing. The term of a memory is the server's time in microseconds, or one more than
// the largest term known of the budget when that is larger.
//
// The first command of all finds no memory, either. Members that know that it is the first
// vouch for the one that begins then (ledger.Command.Born), and it grants at once.
// Otherwise a budget begins with its second window. Those that nobody asked for in 62 days
// are dropped when another begins.
//
// # What is not
//
// Two primaries during a split brain both grant. Slices that members were sent and that
// a recovery emptied are taken to be what the parameters say; a holder says itself what
// its member was sent. Rows that are changed or deleted by hand (TRUNCATE and DROP are
// noticed), tables that are set to LOGGED, and pg_resetwal are not noticed.
package postgres

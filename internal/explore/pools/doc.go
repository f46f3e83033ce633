// Package pools searches the coordinator of concurrency pools exhaustively: the
// models of package explore's search that drive pool.State. They add holders,
// messages under way, clocks, misfortunes and an auditor who counts what is in
// flight; what is granted to whom the production code decides.
package pools

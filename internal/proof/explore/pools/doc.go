// Package pools searches the coordinator of concurrency pools exhaustively: the
// models of package explore's search that drive pool.State. They add holders,
// messages under way, clocks, misfortunes and an auditor that counts what is in flight. The
// production code decides what each holder is granted.
package pools

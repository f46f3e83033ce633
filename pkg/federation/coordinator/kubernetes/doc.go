// Package kubernetes keeps budgets in the memory of one process, the leading
// controller, with no server but the API server of Kubernetes.
//
// It grants only from blocks of a window that it set aside before, by a
// compare-and-swap of one small record for each budget (hi/lo allocation; the API
// server's store makes the record durable by Raft). So the API server is asked once
// for a block, not once for a lease. A memory that follows one that crashed takes all
// that was set aside for granted: a crash forfeits at most one block, and never
// grants a unit twice. Two that believe to lead at once grant from blocks of their
// own; the one that was overtaken learns it from its next write.
//
// A budget that was never kept has forgotten nothing, so it is served in the window that
// is open when it is first asked for. Births distinguish it from one whose record somebody
// deleted.
//
// The record is reached through Journal and the births through Births, so the package knows nothing of Kubernetes
// but the name. It owns one goroutine for each write under way.
package kubernetes

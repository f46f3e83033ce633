// Package federation searches budgets that several regions share exhaustively: the
// models of package explore's search that drive ledger.State and escrow.State. They
// add regions, processes, messages under way, clocks, crashes and an auditor that counts
// what is admitted while the coordinator's clock shows a window. The production code decides
// what is granted and handed on.
package federation

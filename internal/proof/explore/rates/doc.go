// Package rates searches budgets with two rates exhaustively: the models of package explore's search
// that drive joint.Draw over escrow.State and ledger.State, two of each for every member and hub. They
// add members, processes below them, a clock that passes in the midst of a draw, edits, answers that get
// lost, hubs that crash and go on from durable blocks, and an auditor of each rate that counts what is
// admitted while the hub's clock shows a window. The production code decides what is granted, handed on
// and put back.
package rates

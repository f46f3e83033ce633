// Package birth is what the cluster of a member remembers of a budget so that a new one
// need not wait for its next window. It is a pure machine; its caller keeps the
// state where it survives the ledger.
//
// A ledger cannot know whether it is the first of a budget, or another was lost. Together
// the members can. Each remembers where the budget is kept, the first memory of that
// ledger that it met, and every member that was ever listed with it. It vouches for that
// memory alone: it was granted nothing by others. A ledger for which all its members vouch
// was the first (ledger.Command.Born).
//
// It needs this of the keeper of the state: New is for a budget without a remembered
// state, and a state is forgotten only when all windows are over that were open then.
// Nothing may be asked of a ledger before a Birth is written down that has Ledger and
// Memory, or neither.
//
// It does not cover clusters that used the same id before and are not listed by the
// members of now. So a cluster is listed by the others before it takes part.
//
// The package imports nothing but the standard library.
package birth

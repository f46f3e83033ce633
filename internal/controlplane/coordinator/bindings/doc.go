// Package bindings says which contract is in force for a limit whose scope may be edited: the store of its
// cluster, or a budget that several share.
//
// A limit whose scope is edited from Fleet to Federated, or back, has two places that grant for it. Neither
// knows what the other granted. So that no window admits twice, the store is asked first in either scope,
// and says which contract is in force. For a limit that draws from a budget it is asked with parameters of
// their own, the sentinel: windows as long as the budget's, and a limit that never matters. To the store, an
// edit of the scope is then the same as an edit of rates:
//
//	the store has           the limit draws from   in force
//	nothing                 a budget               the budget
//	windows of the store    a budget               the store's windows until the last of them ends
//	the sentinel's windows  a budget               the budget
//	the sentinel's windows  the store              the budget it drew from until the sentinel's window
//	                                               ends; nothing when that is not known
//
// The windows of a budget are those of its coordinator's clock, which may differ from the store's: the
// window that a number names may be open there when it is over here. So that no number is served by both,
// two rules hold, each by its own clock. Nothing is drawn from a window of the budget whose number is below
// that of the store's window, of the same length, in which the limit was first seen to draw: all that the
// store granted before were over then, whatever lengths they had. So the instant holds for a budget that is
// created again with other rates, too. The store has a contract for each value of a key: while the limit draws
// for one, the store's windows may go on for another, and until these are over each request counts as the first.
// The store grants nothing of windows that began before the last one drawn from ended. A new leader knows
// neither the latter nor of values what the store granted before.
//
// The sentinel is in the ledger that a leader hands over. A crash that loses it loses the store's windows as
// well, which then grant nothing; a limit that draws from a budget goes on, for its budget forgets nothing.
package bindings

// Package keyed lets a region use its part of a budget with a key: the engine between the
// holders of a region and the coordinator, which grants each value of the key the whole
// limit over all regions.
//
// A Region is one process's view of one budget, and a store to its holders. It keeps one
// keys.Purse for each value that was asked for. Requests for more than a purse has wait for the
// next message: up to keys.MaxAsks keys share one, and a key is in one at a time. So when many
// keys are in demand, there are as many messages as answers that one waits for, whatever the
// number of keys.
//
// # Why the regions stay within the limit
//
// The coordinator grants no more of a key in a window than its limit (package keys). Units
// count from before the message was sent, for the lifetime that came with the answer, less
// what two clocks may part meanwhile; that is looked at after every wait. They are in one
// purse or handed on, and die with their window. An answer that is lost takes its units with
// it: nothing is sent again.
//
// # How much of the limit is used
//
// The first message of a key in a window asks for what somebody waits for: a value that is
// used once costs one round trip, and nothing after that. Those that follow ask for as much
// again as was used of the window, and when half of that is left the next is asked for ahead
// of need; but for no more than a part of what the coordinator has left. So the last units
// are not stranded with a region that asked early. That nothing is left is remembered until
// the window ends.
//
// # Without the coordinator
//
// The units in hand are handed on, and of a region with slices those of each value; then
// requests are refused, with the time until the next attempt. Which window surely is open,
// and which slice is the region's, is known to Slices; no other region is granted units of
// it. A slice is used first, whether or not the coordinator answers: it costs no round trip.
// That requests are refused is not an error once the coordinator has answered: a holder that knows
// nothing of other regions might act on one.
//
// The package owns goroutines, one for each message under way. It sees coordinators only
// through its interface.
package keyed

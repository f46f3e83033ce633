// Package cutover moves the counters of a policy from one store to another while
// traffic flows, without one admission too many.
//
// The new store does not know what the old one granted, so the two may never
// serve side by side. The new one may grant nothing from a window in which the old one
// served. The move has three steps. Every sidecar acknowledges each before the next
// begins:
//
//	Serving   the old store serves; every sidecar is connected and the new
//	          store answers
//	Draining  nobody asks the old store, and nobody spends what it granted
//	Serving   the new store serves windows that begin after its clock was read,
//	          which was after the last sidecar drained
//
// While it drains nothing is admitted, so a step that takes too long is taken
// back: the old store serves on, which knows all it granted, and the move is
// tried again later.
//
// The package is pure: time is an argument.
package cutover

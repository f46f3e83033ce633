// Package sizing learns how much to lease at once from a counter that several share.
//
// With a size b and D units asked for, a window costs the round trips and the units
// stranded at its end, half a lease on average: the economic order quantity of
// inventory theory (Harris 1913),
//
//	cost(b) = roundTrip·D/b + strand·b/2, least at b* = √(2·roundTrip·D/strand).
//
// The weights of both are fixed: docs/policies.md has the figures that say why.
//
// Nothing that is learned is trusted. A size is what a lease asks for; the keeper of
// the counter decides what is granted, and for how long.
//
// The package is pure: values in, values out. It knows no clock, context or goroutine.
package sizing

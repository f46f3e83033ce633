// Package sizing learns how much to lease at once from a counter that several share.
//
// What a window costs with a size b when D units are asked for is the round trips and
// what is stranded at its end, half a lease on average: the economic order quantity of
// inventory theory (Harris 1913),
//
//	cost(b) = roundTrip·D/b + strand·b/2, least at b* = √(2·roundTrip·D/strand).
//
// Nothing that is learned is trusted. A size is what a lease asks for; what is
// granted, and for how long, the keeper of the counter decides.
//
// The package is pure: values in, values out. It knows no clock, context or goroutine.
package sizing

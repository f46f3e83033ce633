// Package limiter is the core of Weir: the state machines that decide how much
// of a limit may be granted.
//
// A machine is one pure function,
//
//	Step(state, now, command) (state, result)
//
// Time is an argument, state is a comparable value, all arithmetic is on
// integers, and nothing here does I/O, starts a goroutine or reads a clock. The
// same function therefore runs in the memory store, stands as the oracle beside
// the Lua of the Redis store, and is what exhaustive search explores.
//
// There is one primitive. A command asks for {Min, Want} units and the result
// grants either nothing or an amount in [Min, Want]. A strict check asks with
// Min = Want = cost; a lease asks with Min = cost and Want = batch, so the last
// units of a window are never stranded behind a batch.
package limiter

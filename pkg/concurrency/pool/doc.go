// Package pool is the coordinator of one concurrency limit that a whole fleet
// shares: the pure state machine that turns what holders report into the share of
// the limit that each may use.
//
// A holder beats: it reports how much it has in flight, which share it enforces and
// what limit it inferred, and is answered with its share. A coordinator applies a
// beat with Step, atomically and by its own clock; the holder's engine is in package
// concurrency.
//
// The bound. Each holder has a reserve: the most it may have in flight by what the
// coordinator knows for itself. That is the largest share it issued to the holder and
// did not see superseded, and the work that the holder reported still running when it
// last confirmed a share. A share is granted only from what the reserves of all
// others leave of the limit. So while the limit stands still, what the fleet has in
// flight never exceeds it: not by delayed, lost, repeated or reordered beats, not by
// holders that join, leave, die or come back. When the limit falls, nothing new is
// admitted above it, and what runs drains.
//
// Numbers distinguish what may go wrong between a holder and its coordinator: beats
// carry a sequence number, so that one that is late or repeated changes nothing;
// shares carry a generation that is never used twice within a term, so that an old
// acknowledgement never stands for a new share; and a term is one uninterrupted
// memory, so that a coordinator that forgot everything begins with a quarantine, in
// which it only confirms what holders still use.
//
// The bound needs this of a holder: it reads a report at one instant and numbers it
// above all before; it never goes back to an earlier grant; it uses a share only
// until its TTL has passed since it sent the command, by a clock that is not slower
// than the coordinator's by more than its margin, and ends by then what is in flight
// (what it cannot end may be exceeded by); it takes nothing new from a grant of a
// quarantine; and it leaves when nothing is in flight and sends nothing afterwards.
//
// The package imports nothing but the standard library and limiter's units of time.
// It knows no clock, context, goroutine or order of a map.
package pool

// Package clock gives processes of this machine wall clocks of their own, which are
// wrong, drift and step as they are set to, as those of different nodes do. Nothing in
// a program knows of it: Program builds ours on a standard library whose time.Now reads
// such a clock, and Library is loaded before the C library of others. Monotonic time,
// which nobody sets, stays the machine's.
package clock

// Package disk makes the disk of a process look full: what it writes to files fails with
// ENOSPC while a Disk is full, and nothing else on the machine is affected. The process
// has to be one of the C library that a loaded library can reach.
package disk

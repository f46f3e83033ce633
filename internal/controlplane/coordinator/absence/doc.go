// Package absence knows which sidecars of earlier leaders may still be on their local shares,
// and what a new leader may therefore grant. It reads no clock of its own and does no I/O.
package absence

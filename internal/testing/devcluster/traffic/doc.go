// Package traffic sends load through sidecars and counts, without asking Weir, what
// became of it. The generator counts what it offered and how it was answered, and the
// application reports to the tally every request that reached it.
package traffic

// Package storeprobe lets the controller ask the stores that policies name how
// firmly they keep counters, without asking one more often than needed, and what
// their clocks read.
package storeprobe

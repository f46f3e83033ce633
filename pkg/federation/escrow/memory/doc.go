// Package memory keeps escrows in the memory of one process: for a region whose
// processes all take from it, as from its leading controller.
//
// What it remembers ends with the process. What was granted is forfeited then, and the
// escrow that begins asks under another name.
package memory

// Package memory keeps escrows in the memory of one process: for a region whose
// processes all take from it, as from its leading controller.
//
// Its memory ends with the process. All grants are forfeited then, and the escrow that
// begins asks under another name.
package memory

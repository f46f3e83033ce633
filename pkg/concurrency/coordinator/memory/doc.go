// Package memory coordinates concurrency pools in the memory of one process: of the
// leading controller, or of a program that shares a limit among its own parts.
//
// Its memory ends with the process unless it is handed over: Export seals it and
// Import lets another go on. A coordinator that follows one whose memory was lost
// begins every pool with a quarantine, counted from when it began itself.
package memory

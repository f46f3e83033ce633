// Package memory keeps federated budgets in the memory of one process: for a program
// that shares a limit among its own parts, and for tests.
//
// Its memory ends with the process. A coordinator that follows one whose memory was
// lost grants nothing of windows that began before it did itself.
package memory

// Package failuremodes holds no code, only the table of what can go wrong with a budget
// that regions share, and the tests that prove its words.
//
// Each row names a fault, what a region does meanwhile, what is lost and how it recovers.
// The figures in these words are bounds: the row's test injects the fault under load,
// measures them, and fails outside of the bounds. docs/failure-modes.md is rendered from
// the same rows, so it cannot tell anything else.
package failuremodes

// Package failuremodes holds no code, only the tables of what can go wrong. For a budget
// that regions share, it holds the tests that prove the tables' words. For everything
// else, each fault names the tests of other packages that inject it.
//
// Each row of a budget names a fault, what a region does meanwhile, what is lost and how it recovers.
// The figures in these words are bounds: the row's test injects the fault under load,
// measures them, and fails outside of the bounds. docs/failure-modes.md is rendered from
// the same rows, so it cannot say anything else.
package failuremodes

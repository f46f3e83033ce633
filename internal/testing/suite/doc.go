// Package suite has what the conformance suites of pools, budgets and escrows share: dice, the loop that
// plays random timelines, a clock that a test sets, and checks of errors. Each suite keeps its own
// commands, and its own comparison with the core.
package suite

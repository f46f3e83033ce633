// Package budgettest is the suite that every coordinator of federated budgets passes.
// It sees a coordinator only through Apply, Observe and a few hooks, runs by the
// coordinator's own clock, and holds its answers to ledger.State, step for step.
//
// A coordinator whose steps are written in another language compares them with
// ledger.State in Fuzz as well.
package budgettest

// Package escrowtest is the suite that every escrow passes. It sees an escrow only
// through Apply and a few hooks, runs by the escrow's own clock, and holds its answers
// to escrow.State, step for step.
//
// An escrow whose steps are written in another language compares them with
// escrow.State on a Timeline as well.
package escrowtest

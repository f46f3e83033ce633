// Package pooltest is the suite that every coordinator of concurrency pools passes.
// It sees a coordinator only through Apply and a few hooks, runs by the coordinator's
// own clock, and holds its answers to pool.State, step for step.
//
// A coordinator whose steps are written in another language compares them with
// pool.State on a Timeline as well.
package pooltest

// Package membudget admits what a sidecar keeps in memory for its clients: connections, heads,
// requests, bodies, and the keys of limits. All of it is taken from one size, which follows from the memory of the
// container. Where too little is left, connections that hold no request give way, and then
// new ones are refused. docs/proxy.md has the formula.
package membudget

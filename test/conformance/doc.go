// Package conformance holds sidecars to suites for servers and proxies, some of them its own.
// Each suite asks the app itself, a sidecar with a limit, one with a limit and a pool, and
// haproxy, so that a fault of the suite or of the app shows. Tools that deploy objects judge
// what the controllers write into a status. It is a module of its own,
// because of the dependencies of the suites.
package conformance

// Command controller is Weir's control plane in one process: the admission
// webhooks on every replica; the reconciler, the coordinator that sidecars
// connect to, and its store of counters on the leading one.
package main

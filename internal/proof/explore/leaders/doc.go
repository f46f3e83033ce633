// Package leaders searches changes of leader between nodes whose clocks differ
// exhaustively: the models of package explore's search that drive the pure part of
// internal/controlplane/leadership, limiter.Params.Step and the credits of pkg/twotier. They add
// nodes with clocks of their own, the Lease, writes that are late or lost, processes that
// stop in order or crash, holders that outlive them, and an auditor that counts what is
// admitted of each window.
package leaders

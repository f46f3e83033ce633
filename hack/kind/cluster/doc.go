// Package cluster runs Kubernetes clusters for development and tests: kind's, on
// an engine and a node image that are provided when they are missing (packages
// engine and nodeimage), so that neither Docker nor a registry is required.
//
// Pods get their addresses and routes from this package, not from a network
// provider: the ptp plugin on every node, with a subnet of its own, and routes
// between the nodes' containers. That is the same for every node image, starts
// nothing, keeps the sender's address between pods, and extends to several
// clusters by Join. Two things follow. NetworkPolicy objects are accepted and
// not enforced, unless an agent is added. And this setup lasts as long as the nodes
// run: after a restart of the
// engine, create the cluster again.
//
// Clusters are created and deleted one at a time on one machine; a process that
// has to wait says so.
package cluster

// Package hub is how the clusters that share a budget reach the one that keeps it.
//
// The hub's leading controller runs a Server, through which members of a budget apply
// commands to its coordinator. A member has a Client for each hub, which is a coordinator
// like any other. Both authenticate with certificates of one authority that the hub keeps
// for this alone, and the member in each call with a token as well. Credentials puts both
// into a Secret for each member, which an administrator of the clusters copies. A Journal
// keeps what the coordinator sets aside in ConfigMaps.
//
// The package owns goroutines: those of Server, Credentials and Sweeper while Start
// runs, and those of gRPC for each connection.
package hub

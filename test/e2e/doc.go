// Package e2e proves Weir on a real cluster, installed as its users install it:
// `make e2e`. What was admitted is counted at the application.
//
// Specs labelled "extended" need more nodes or another cluster: `make e2e-extended`
// runs them, too.
package e2e

// Package e2e proves Weir on a real cluster, installed as its users install it:
// `make e2e`. What was admitted is counted at the application.
package e2e

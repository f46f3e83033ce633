// Package e2e proves Weir on a real cluster, installed as its users install it:
// `make e2e`. What was admitted is counted at the application.
//
// A spec that fails is tried once more, since nodes, images and timers of a real cluster
// are slow at times; one in which a window admits more than its limit ends the suite.
package e2e

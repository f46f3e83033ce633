// Package e2e proves Weir on a real cluster, installed as its users install it:
// `make e2e`. Admissions are counted at the application.
//
// Specs spend their time waiting for pods and windows, so they run side by side, each in
// a namespace of its own. The Serial ones, which affect all others, follow one by one. Those of
// budgets over clusters make a second cluster.
//
// A spec that fails is tried once more, since nodes, images and timers of a real cluster
// are slow at times; one in which a window admits more than its limit ends the suite.
package e2e

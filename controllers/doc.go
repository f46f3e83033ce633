// Package controllers reconciles the kinds of Weir. A reconciler gathers what
// the API server and the fleet say, publishes what the fleet has to enforce,
// judges all of it by pure functions of one scope, and writes one status patch.
//
// It holds no limiter arithmetic and no store: the fleet is seen through the
// small interfaces declared here.
package controllers

// Package middleware holds the requests of a Go service to limits of package twotier, without a
// sidecar and without Kubernetes. Handler is for net/http, UnaryServerInterceptor and
// StreamServerInterceptor are for gRPC.
//
// A request is admitted when all limits that apply to it admit it, and is charged to all of them
// or to none. One that is over a limit is answered with 429 or ResourceExhausted, with the time
// after which it may succeed. While a store is unavailable, the failure action of its limit
// decides; a request that it refuses is answered with 503 or Unavailable.
//
// The caller owns the limiters and closes them after the server has stopped.
package middleware

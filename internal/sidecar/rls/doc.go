// Package rls answers Envoy's rate limit service, version 3, for an Envoy in the same
// pod: descriptors of a call are decided by the limits that also judge requests, on
// the same counters.
//
// The protocol is that of envoy/service/ratelimit/v3/rls.proto. Where it leaves room
// the service is strict: what a client says of the limit itself, a limit of its own or
// hits that are given back, it does not get.
package rls

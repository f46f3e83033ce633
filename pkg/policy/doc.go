// Package policy is all that the data plane knows of the API: policies resolved
// for one sidecar, validated, versioned, and free of Kubernetes types.
//
// The control plane translates RateLimitPolicy objects into a Snapshot, encodes
// it once, and pushes it; a sidecar decodes it, refuses what does not validate,
// keeps the last good one, and matches requests against it.
package policy

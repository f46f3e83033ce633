// Package sidecar is the process that enforces policies in a pod: a proxy in
// front of the app, a check API beside it, and one stream to the controller. It
// knows no Kubernetes: everything comes by flags, environment and that stream.
//
// It goes on deciding when the controller is away, and is ready before it ever
// reached it.
package sidecar

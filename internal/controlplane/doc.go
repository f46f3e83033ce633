// Package controlplane holds no code. The packages below it are parts of the controller, which
// runs as a Deployment: it injects sidecars, resolves policies, leads the fleet and audits it.
//
// They may import Kubernetes' libraries. A package of internal/sidecar must not import one of
// these, because a sidecar carries no Kubernetes client; both sides meet in internal/fleetpb.
// No package here imports internal/proof or internal/testing, except in tests.
package controlplane

// Package admin serves metrics and readiness to everybody, and the configuration in
// force to users with access to the pod. It shows neither secrets nor keys that requests
// came with.
package admin

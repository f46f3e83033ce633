// Package admin serves what people and machines look at: metrics and readiness to
// everybody, and the configuration in force to those who have access to the pod. Nothing
// of it shows a secret, or a key that a request came with.
package admin

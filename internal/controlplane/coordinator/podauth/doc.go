// Package podauth authenticates pods by the service-account tokens that kubelets project into
// them. It verifies a token by the keys that the cluster publishes, and asks the API server
// where those cannot decide.
package podauth

// Package portforward is the part of a kubelet that an API server asks on behalf of
// `kubectl port-forward`.
package portforward

// Package exchange is what the engines of the proxy have in common, whatever the protocol: the
// handler that decides about a request, what goes along with one that passes, and the answers that
// the sidecar gives itself.
package exchange

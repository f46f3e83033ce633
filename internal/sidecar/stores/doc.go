// Package stores holds the connections of a sidecar to the stores its policies
// name: one for each address, however many policies share it.
package stores

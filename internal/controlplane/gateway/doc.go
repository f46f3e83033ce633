// Package gateway asks the Redis and Postgres servers of policies on behalf of sidecars that
// are not to know where these are, nor to have their credentials.
//
// The leading controller only carries commands: counters, clock and memory are the store's. A
// command that reaches it late, through a leader that has been replaced, say, can do what a late
// command of a sidecar with a connection of its own could do: strand what it is granted until the
// window ends. So no term fences it.
package gateway

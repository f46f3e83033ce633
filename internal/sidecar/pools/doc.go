// Package pools gives requests slots of the concurrency pools that apply to the pod. A
// request that belongs to several holds a slot of each, or none.
//
// The package turns each pool of a snapshot into a guard and keeps the guard, and with it
// what is in flight, over changes of the pool. When the pool no longer applies, the guard goes
// on without new requests until the last one is done, and only then gives its share up.
// When the pool applies again before, it is the same guard.
//
// A pool with a key has two guards: one of all requests, and one whose share every value of the
// key has for itself. A request needs a slot of both.
//
// A pool whose coordinator was exchanged is another pool: what is in flight under the
// former is not counted by the new one. TLS and credentials are not of the coordinator
// but of the way to it: the same guard goes on over other connections.
package pools

// Package traffic sends requests to what is measured. It costs less than any server that it asks.
package traffic

import "time"

// A Load sends requests over connections that stay open. Methods are called one at a time.
type Load interface {
	// Closed has a request follow whenever one was answered, until an instant but at least one each,
	// and waits for the last answer. It returns how many were answered: of calls that stream, how
	// many messages.
	Closed(until time.Time) (answered int, err error)
	// Open sends that many requests a second for a time, whether they are answered or not, and
	// returns how long each took, sorted. One that could not be sent in time, since its connection
	// still waited for an answer, began when it should have. The sender's own timer is not counted.
	Open(perSecond int, length time.Duration) (took []time.Duration, err error)
	// Close closes the connections.
	Close()
}

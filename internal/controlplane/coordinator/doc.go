// Package coordinator is the leading controller's side of the fleet stream. Every
// sidecar keeps one stream to it: configuration goes down, and acknowledgements,
// leases and reports come up. A session is such a stream, from a holder's hello to its
// end, and what the holder said on it; the newest speaks for its pod.
//
// It serves only while its process leads. A term of leadership begins by raising
// the recorded term and taking over the ledger that a predecessor left; it ends
// by sealing the store and leaving its own. Units whose grant a crash forgets are never
// granted a second time: the crash costs the windows that were open.
//
// The package owns goroutines: three for each session, and a few for a term.
package coordinator

// Package proxy is the reverse proxy in front of the app: it lets through what
// the decider admits, unchanged, and answers the rest itself.
//
// Requests reach the app in the protocol that they came in. Those of HTTP/1.1 that have no
// body and ask for no other protocol go the direct way, which hands them to no other
// goroutine; the others go through an http.Transport. Both write the same bytes, and hold
// the same bounds and rules of when a request may be sent again.
package proxy

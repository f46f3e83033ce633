// Package proxy is the reverse proxy in front of the app: it lets through what
// the decider admits, unchanged, and answers the rest itself.
//
// Requests reach the app in the protocol that they came in: those of HTTP/2 by package frames,
// which asks a Proxy about them. Those of HTTP/1.1 that have no
// body and ask for no other protocol go the direct way, which hands them to no other
// goroutine; the others go through an http.Transport. Both write the same bytes and hold
// the same bounds. Both send a request again over another connection when nothing of it was
// written. When the app closed one that served others before and said nothing, they send it
// again once if it does no harm twice.
package proxy

// Package proxy is the reverse proxy in front of the app: it lets through what
// the decider admits, unchanged, and answers the rest itself.
//
// Requests reach the app in the protocol that they came in: those of HTTP/1.1 by package http1, and
// those of HTTP/2 by package frames. Both ask a Proxy about them, which also sees the answer; see
// package exchange.
package proxy

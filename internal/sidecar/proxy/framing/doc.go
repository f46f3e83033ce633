// Package framing holds HTTP/1.1 connections to the letter of RFC 9112.
//
// net/http forgives what two parsers may read differently: a line that ends in a bare
// LF, a folded field, Content-Length beside Transfer-Encoding, or a Transfer-Encoding
// in HTTP/1.0. It hides from handlers what it forgave. A proxy in front of a sidecar
// that reads such bytes differently lets one request smuggle another past it. So a
// connection is checked as it is read, and broken off before the parser behind it sees
// the line that is wrong. It answers 400 and closes.
package framing

// Package framingtest judges what a proxy lets through. It reads requests by the
// grammar of RFC 9112 and of RFC 9110 as it is printed, without the liberties that
// these leave to a server, and it makes requests that are malformed.
//
// It shares nothing with net/http and with package framing, which it is to judge.
package framingtest

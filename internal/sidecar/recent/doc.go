// Package recent keeps the last requests that a sidecar answered in place of the app, and the
// reason of each. What is kept is bounded, whatever clients send, and has no value of a key.
package recent

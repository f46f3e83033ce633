// Package recent keeps the last requests that a sidecar answered in place of the app, and the
// reason of each. They are bounded, whatever clients send, and have no value of a key.
package recent

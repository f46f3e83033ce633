// Package backend is a server that bears only so much: it works on a few requests at
// a time and lets the others wait, as a database with a pool of threads does. It
// counts for itself what it has in flight, so that what a concurrency limit promises
// is measured where it matters.
package backend

// Package backend is a server of limited capacity: it works on a few requests at a time
// and lets the others wait, as a database with a pool of threads does. It counts its
// own requests in flight, so that the promise of a concurrency limit is measured where
// it matters.
package backend

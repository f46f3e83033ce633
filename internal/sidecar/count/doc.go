// Package count is the sidecar's auditor: it counts what each limit let through
// and refused, for every tuple of store windows and every key, by itself. It
// knows neither the engine nor the store, so an engine that admits too much is
// seen here.
//
// Counts are cumulative and kept for some minutes after their windows ended, so
// that a report can be repeated and a question about a key answered.
package count

// Package poolaudit measures how far a concurrency pool kept to its limit, from what its
// holders report. Like package audit it is pure: time is an argument, and nothing here
// starts a goroutine.
//
// The overshoot Δ is what was in flight beyond the limit, the under-utilization U the part
// of the limit that was free while requests were refused.
package poolaudit

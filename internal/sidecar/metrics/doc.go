// Package metrics is what a sidecar exports to Prometheus. Labels are bounded by the
// policies in force: no client can add a series.
package metrics

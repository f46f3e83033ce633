// Package metrics exports what the controller knows of its objects to Prometheus:
// what their status says, as numbers.
//
// Labels name objects of the configuration and their parts, never anything that
// traffic brings along, so the number of series is bounded by what users wrote. Only
// the leader exports figures, since only it measures; a figure that is not known has
// no series, and never reads as 0.
package metrics

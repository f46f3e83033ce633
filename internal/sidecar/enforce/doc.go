// Package enforce decides what a sidecar lets through: it turns policies into
// limiters, asks every limit that applies to a request, and takes back what some
// admitted when another refuses. Policies are replaced while requests run,
// without dropping what was counted.
package enforce

// Package revision makes one version of a snapshot from another. A controller computes what differs, an
// Edit. A holder of the version before builds the next by it, verifies that it is just that, and keeps
// all that did not change as it is. The package does no IO.
package revision

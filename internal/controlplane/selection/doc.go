// Package selection reads from pods alone whether requests to them are limited. It is
// pure, so the reconcilers and the kubectl plugin share it.
package selection

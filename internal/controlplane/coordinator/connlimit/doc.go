// Package connlimit bounds the connections to the fleet's port, before and after their
// streams are authenticated, so that no client takes the memory that others need. A bound
// that is met is counted and logged.
package connlimit

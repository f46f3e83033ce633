// Package condition holds what every status has in common: how the conditions
// of one kind are merged into an object, and when a condition counts as changed.
package condition

// Package notices passes on which objects changed, and gathers what changes in quick succession: an edit
// that thousands of sidecars acknowledge is looked at a few times, and not as often as that takes.
package notices

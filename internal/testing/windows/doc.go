// Package windows has what suites of whole systems share to judge windows: when they begin, and how
// long one waits until they are as wanted.
package windows

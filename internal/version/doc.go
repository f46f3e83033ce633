// Package version tells which version of Weir a program is.
package version

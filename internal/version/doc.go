// Package version says which version of Weir a program is.
package version

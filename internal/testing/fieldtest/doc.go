// Package fieldtest finds fields that a function should copy, and does not.
package fieldtest

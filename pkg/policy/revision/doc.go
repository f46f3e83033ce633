// Package revision has snapshots differ by what was changed in them. A controller says what makes one
// version of the other, and a holder that has the one builds the other, checks that it is just that, and
// keeps all of it that did not change. All of it is pure.
package revision

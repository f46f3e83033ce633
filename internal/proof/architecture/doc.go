// Package architecture holds no code, only the test of who may import whom. The
// layers and their directions are drawn in the README; the test reads them from
// the compiled import graph, so a forbidden edge fails wherever it hides.
package architecture

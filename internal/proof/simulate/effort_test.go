//go:build !race

package simulate

// seeds is how many storms each promise has to stand here; make simulate has more.
const seeds = 10

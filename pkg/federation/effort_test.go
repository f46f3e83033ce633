//go:build !race

package federation_test

// storms is how many there are.
const storms = 240

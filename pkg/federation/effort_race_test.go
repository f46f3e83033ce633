//go:build race

package federation_test

// storms is how many there are: fewer under the race detector, which makes each ten times
// as long.
const storms = 40

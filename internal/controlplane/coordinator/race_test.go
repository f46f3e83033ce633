//go:build race

package coordinator

// underRace is whether the race detector is on. It gives up on some tests that have thousands
// of goroutines ("ThreadSanitizer: CHECK failed"), so those of fleets are small with it.
const underRace = true

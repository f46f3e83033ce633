package seeds

import "os"

// allEnv has tests play in all of their worlds, as `make test-seeds` does.
const allEnv = "WEIR_ALL_SEEDS"

// part is the part of the worlds that a test plays in under the race detector, which slows each by
// an order of magnitude: a race that a world can have shows in few of them.
const part = 4

// Of returns in how many of n worlds to play: all, or a quarter under the race detector.
func Of[T int | uint64](n T) T {
	if !underRace || os.Getenv(allEnv) != "" {
		return n
	}
	return (n + part - 1) / part
}

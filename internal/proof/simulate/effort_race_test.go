//go:build race

package simulate

// seeds is few where a run takes many times as long. One goroutine runs at a time,
// so the detector has little to find.
const seeds = 2

//go:build !race

package coordinator

const underRace = false

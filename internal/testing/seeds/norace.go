//go:build !race

package seeds

const underRace = false

//go:build race

package seeds

const underRace = true

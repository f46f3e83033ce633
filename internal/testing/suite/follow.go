package suite

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Follow plays eight random timelines, the same ones each time.
func Follow(t *testing.T, play func(*testing.T, Dice)) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { play(t, rand.NewPCG(seed, 4).Uint64) })
	}
}

// Fuzz plays timelines whose choices are the input until that ends. Each has a test of its own name, so that
// it finds nothing of those before it.
func Fuzz(f *testing.F, play func(*testing.T, Dice)) {
	for seed := range byte(16) {
		f.Add([]byte{seed})
	}
	played := 0
	f.Fuzz(func(t *testing.T, choices []byte) {
		played++
		t.Run(fmt.Sprint(played), func(t *testing.T) { play(t, Chosen(choices)) })
	})
}

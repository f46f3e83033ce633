package suite

import "math/rand/v2"

// A Dice yields the choices that make a timeline.
type Dice func() uint64

// Chosen returns a dice that yields the given choices, and then those that follow from them as a seed.
func Chosen(choices []byte) Dice {
	var seed [32]byte
	copy(seed[:], choices)
	rest := rand.NewChaCha8(seed)
	return func() uint64 {
		if len(choices) == 0 {
			return rest.Uint64()
		}
		chosen := choices[0]
		choices = choices[1:]
		return uint64(chosen)
	}
}

// Below returns a number from 0 up to n, without n.
func (d Dice) Below(n int64) int64 { return int64(d() % uint64(n)) }

// OneIn returns true once in n times.
func (d Dice) OneIn(n int64) bool { return d.Below(n) == 0 }

// OneOf returns an element of a list that is not empty.
func OneOf[T any](d Dice, list []T) T { return list[d.Below(int64(len(list)))] }

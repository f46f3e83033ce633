package slots_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// TestKeysAgreeWithACount admits and releases at random, and counts beside it what is in
// flight of each key.
func TestKeysAgreeWithACount(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		keys, count := slots.NewKeys(), map[string]int64{}
		before, since := int64(0), int64(0)
		for range 400 {
			key, ceiling := fmt.Sprint(rng.IntN(4)), int64(rng.IntN(6))
			switch rng.IntN(8) {
			case 0:
				keys.Mark()
				before, since = max(before, since), most(count)
			case 1:
				keys.Forget()
				before = 0
			case 2, 3, 4:
				if got, want := keys.Admit(key, ceiling), count[key] < ceiling; got != want {
					t.Fatalf("seed %d: admitted %t below %d with %d in flight", seed, got, ceiling, count[key])
				} else if got {
					count[key]++
				}
			default:
				if count[key] > 0 {
					keys.Release(key)
					count[key]--
				}
				if count[key] == 0 {
					delete(count, key)
				}
			}
			since = max(since, most(count))
			if keys.InFlight() != most(count) || keys.Of(key) != count[key] || keys.Len() != len(count) || keys.Peak() != max(before, since) {
				t.Fatalf("seed %d: the most %d, of %s %d, %d keys, peak %d; want %d, %d, %d, %d", seed, keys.InFlight(), key,
					keys.Of(key), keys.Len(), keys.Peak(), most(count), count[key], len(count), max(before, since))
			}
		}
	}
}

func most(count map[string]int64) int64 {
	var n int64
	for _, of := range count {
		n = max(n, of)
	}
	return n
}

func TestReleasingAKeyWithoutRequestsPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic: a count went below nothing")
		}
	}()
	slots.NewKeys().Release("a")
}

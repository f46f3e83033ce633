package twotier

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestIndexAgreesWithAMap compares the index with a Go map over random changes.
func TestIndexAgreesWithAMap(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			x, want := newIndex(), map[string]*lease{}
			for range 5000 {
				value := fmt.Sprint(rng.IntN(300))
				e := &lease{value: value}
				switch _, known := want[value]; {
				case !known:
					x.add(e)
					want[value] = e
				case rng.IntN(2) == 0:
					x.remove(value)
					delete(want, value)
				default:
					x.set(e)
					want[value] = e
				}
				probe := fmt.Sprint(rng.IntN(300))
				if got := x.find(probe); got != want[probe] {
					t.Fatalf("find(%q) = %p, want %p", probe, got, want[probe])
				}
			}
			if n := len(*x.slots.Load()); n > 2048 {
				t.Errorf("%d slots for at most 300 values: deleted ones pile up", n)
			}
		})
	}
}

func TestIndexDoesNotAddWhatWasRemoved(t *testing.T) {
	x := newIndex()
	x.set(&lease{value: "a"})
	if x.find("a") != nil {
		t.Error("set added a value")
	}
}

func TestIndexIsReadWhileItChanges(t *testing.T) {
	x := newIndex()
	stay := &lease{value: "stays"}
	x.add(stay)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if x.find("stays") != stay {
					t.Error("a value that was there all the time was not found")
					return
				}
			}
		})
	}
	for i := range 20_000 {
		x.add(&lease{value: fmt.Sprint(i)})
		if i >= 50 {
			x.remove(fmt.Sprint(i - 50))
		}
	}
	close(done)
	readers.Wait()
}

package twotier

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

func leaseOf(value, tenant string) *lease {
	return &lease{name: nameOf(value, tenant), key: &Key{accountCell: accountCell{tenanted: tenant != ""}}}
}

// someKey returns one of a few hundred keys, many of which have the same letters.
func someKey(rng *rand.Rand) Request {
	value := fmt.Sprint(rng.IntN(100))
	switch rng.IntN(4) {
	case 0:
		return Request{Value: value, Tenant: fmt.Sprint(rng.IntN(4))}
	case 1:
		return Request{Value: nameOf(value, "1")} // as a client might make it up
	case 2:
		return Request{Tenant: value}
	default:
		return Request{Value: value}
	}
}

// TestIndexAgreesWithAMap compares the index with a Go map over random changes.
func TestIndexAgreesWithAMap(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			x, want := newIndex(), map[Request]*lease{}
			for range 5000 {
				r := someKey(rng)
				e := leaseOf(r.Value, r.Tenant)
				switch _, known := want[r]; {
				case !known:
					x.add(e)
					want[r] = e
				case rng.IntN(2) == 0:
					x.remove(e)
					delete(want, r)
				default:
					x.set(e)
					want[r] = e
				}
				probe := someKey(rng)
				if got := x.find(probe.Value, probe.Tenant); got != want[probe] {
					t.Fatalf("find(%q, %q) = %p, want %p", probe.Value, probe.Tenant, got, want[probe])
				}
			}
			if n := len(*x.slots.Load()); n > 2048 {
				t.Errorf("%d slots for at most 300 values: deleted ones pile up", n)
			}
		})
	}
}

func TestIndexDoesNotAddARemovedKey(t *testing.T) {
	x := newIndex()
	x.set(leaseOf("a", ""))
	if x.find("a", "") != nil {
		t.Error("set added a value")
	}
}

func TestIndexIsReadWhileItChanges(t *testing.T) {
	x := newIndex()
	stay := leaseOf("stays", "")
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
				if x.find("stays", "") != stay {
					t.Error("a value that was there all the time was not found")
					return
				}
			}
		})
	}
	for i := range 20_000 {
		x.add(leaseOf(fmt.Sprint(i), ""))
		if i >= 50 {
			x.remove(leaseOf(fmt.Sprint(i-50), ""))
		}
	}
	close(done)
	readers.Wait()
}

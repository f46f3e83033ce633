package store_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/store"
)

func TestSharedCountersHaveTheNamesThatAllProcessesKnow(t *testing.T) {
	const old = "\x00overflow" // of processes that know one shared counter
	if store.Shared(0) != old || store.SharedHash(0) != "cdb8ee7c1ed31ba3c45826b6bfe47b1a" {
		t.Errorf("the first shared counter is %q, %s", store.Shared(0), store.SharedHash(0))
	}
	seen := map[string]bool{}
	for _, i := range []int{0, 1, 2, 255, 256, 12_499, 1 << 20, math.MaxUint32} {
		hash := store.SharedHash(i)
		if store.HashValue(store.Shared(i)) != hash || !store.IsShared(store.Shared(i)) || seen[hash] {
			t.Errorf("shared counter %d is named %s, its value %q has %s", i, hash, store.Shared(i), store.HashValue(store.Shared(i)))
		}
		if got, ok := store.SharedBy(hash); got != i || !ok {
			t.Errorf("%s is read as shared counter %d, %t, want %d", hash, got, ok, i)
		}
		seen[hash] = true
	}
	for _, value := range []string{"", "a", "overflow", old + "x", old + "12345"} {
		hash := store.HashValue(value)
		if i, ok := store.SharedBy(hash); ok || seen[hash] {
			t.Errorf("value %q has the hash of shared counter %d", value, i)
		}
	}
	for _, hash := range []string{"", store.SharedHash(0)[:24], store.SharedHash(0)[:31] + "x"} {
		if _, ok := store.SharedBy(hash); ok {
			t.Errorf("%q is read as a shared counter", hash)
		}
	}
}

// TestValuesAreDividedOverSharedCounters evenly, and by the hash as by the value.
func TestValuesAreDividedOverSharedCounters(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, 12_500} {
		met := make([]int, max(n, 1))
		const each = 30
		for i := range each * len(met) {
			value := fmt.Sprint("value ", i)
			at := store.Share(value, n)
			if of := store.ShareOf(store.HashValue(value), n); of != at {
				t.Fatalf("of %d, value %q shares counter %d by its hash and %d by itself", n, value, of, at)
			}
			met[at]++
		}
		for i, of := range met { // 30 ± 5.5; 7 deviations
			if len(met) > 1 && of > 70 {
				t.Errorf("of %d, counter %d is shared by %d values, expected %d", n, i, of, each)
			}
		}
	}
	if got := store.ShareOf("", 10) + store.ShareOf("no hash!", 10); got != 0 {
		t.Errorf("a key without a hash shares counter %d", got)
	}
}

func TestToFindASharedCounterTakesNoMemory(t *testing.T) {
	for _, value := range []string{"a", strings.Repeat("long ", 51)} {
		if n := testing.AllocsPerRun(100, func() { store.Share(value, 100) }); n > 0 {
			t.Errorf("%v allocations for a value of %d bytes", n, len(value))
		}
	}
}

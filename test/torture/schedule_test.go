package main

import (
	"reflect"
	"testing"
	"time"
)

var tested = []server{{isRedis: true}, {isRedis: true, replica: true}, {}}

func TestASeedHasItsFaults(t *testing.T) {
	const lasts = 2 * time.Minute
	first := schedule(7, lasts, tested, 4)
	if again := schedule(7, lasts, tested, 4); !reflect.DeepEqual(first, again) {
		t.Error("the same seed has other faults")
	}
	if other := schedule(8, lasts, tested, 4); reflect.DeepEqual(first, other) {
		t.Error("another seed has the same faults")
	}
	if len(first) < 30 {
		t.Errorf("%d faults in %s", len(first), lasts)
	}
}

func TestEveryKindOfFaultHappens(t *testing.T) {
	seen := map[kind]int{}
	for seed := range uint64(20) {
		for _, f := range schedule(seed, 2*time.Minute, tested, 4) {
			seen[f.kind]++
		}
	}
	for _, k := range kinds {
		if seen[k] == 0 {
			t.Errorf("no seed of twenty has: %s", k)
		}
	}
}

// What a store cannot suffer does not happen to it.
func TestFaultsAreOfTheirTargets(t *testing.T) {
	for seed := range uint64(20) {
		for _, f := range schedule(seed, 2*time.Minute, tested, 4) {
			if f.kind == flushStore && f.target == 2 || f.kind == promoteStore && f.target != 1 || f.kind == fillDisk && f.target != 2 {
				t.Errorf("seed %d: %s", seed, f)
			}
		}
	}
}

// What is broken has healed before it is broken again, and before the end.
func TestFaultsOfAVictimDoNotOverlap(t *testing.T) {
	const lasts = 5 * time.Minute
	for seed := range uint64(20) {
		until := map[string]time.Duration{}
		for _, f := range schedule(seed, lasts, tested, 4) {
			if f.at < until[f.victim()] || f.at+f.lasts > lasts {
				t.Fatalf("seed %d: at %s %s", seed, f.at, f)
			}
			until[f.victim()] = f.at + f.lasts
		}
	}
}

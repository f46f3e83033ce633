package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var testedShops = []terms{short("shop"), aDay(), short("other"), {action: v1alpha1.AllowAction, window: window}}

var tested = []server{{isRedis: true}, {isRedis: true, replica: true}, {}, {isRedis: true, pairs: 1}}

func TestASeedHasItsFaults(t *testing.T) {
	const lasts = 2 * time.Minute
	first := schedule(7, lasts, tested, testedShops)
	if again := schedule(7, lasts, tested, testedShops); !reflect.DeepEqual(first, again) {
		t.Error("the same seed has other faults")
	}
	if other := schedule(8, lasts, tested, testedShops); reflect.DeepEqual(first, other) {
		t.Error("another seed has the same faults")
	}
	if len(first) < 30 {
		t.Errorf("%d faults in %s", len(first), lasts)
	}
}

func TestEveryKindOfFaultHappens(t *testing.T) {
	seen := map[kind]int{}
	for seed := range uint64(20) {
		for _, f := range schedule(seed, 2*time.Minute, tested, testedShops) {
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
		for _, f := range schedule(seed, 2*time.Minute, tested, testedShops) {
			if f.kind == flushStore && f.target == 2 || f.kind == promoteStore && f.target != 1 || f.kind == fillDisk && f.target != 2 || f.kind == failOver && f.target != 3 {
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
		for _, f := range schedule(seed, lasts, tested, testedShops) {
			if f.at < until[f.victim()] || f.at+f.lasts > lasts {
				t.Fatalf("seed %d: at %s %s", seed, f.at, f)
			}
			until[f.victim()] = f.at + f.lasts
		}
	}
}

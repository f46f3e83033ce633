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
	first := schedule(7, lasts, tested, testedShops, 2)
	if again := schedule(7, lasts, tested, testedShops, 2); !reflect.DeepEqual(first, again) {
		t.Error("the same seed has other faults")
	}
	if other := schedule(8, lasts, tested, testedShops, 2); reflect.DeepEqual(first, other) {
		t.Error("another seed has the same faults")
	}
	if len(first) < 30 {
		t.Errorf("%d faults in %s", len(first), lasts)
	}
}

func TestEveryKindOfFaultHappens(t *testing.T) {
	seen := map[kind]int{}
	for seed := range uint64(20) {
		for _, f := range schedule(seed, 2*time.Minute, tested, testedShops, 2) {
			seen[f.kind]++
		}
	}
	for _, k := range kinds {
		if seen[k] == 0 {
			t.Errorf("no seed of twenty has: %s", k)
		}
	}
}

// No fault is injected into a store that cannot have it.
func TestFaultsAreOfTheirTargets(t *testing.T) {
	for seed := range uint64(20) {
		for _, f := range schedule(seed, 2*time.Minute, tested, testedShops, 2) {
			if f.kind == flushStore && f.target == 2 || f.kind == promoteStore && f.target != 1 || f.kind == fillDisk && f.target != 2 || f.kind == failOver && f.target != 3 {
				t.Errorf("seed %d: %s", seed, f)
			}
		}
	}
}

// A fault has healed before the next one of its target, and before the end.
func TestFaultsOfAVictimDoNotOverlap(t *testing.T) {
	const lasts = 5 * time.Minute
	for seed := range uint64(20) {
		until := map[string]time.Duration{}
		for _, f := range schedule(seed, lasts, tested, testedShops, 2) {
			if f.at < until[f.victim()] || f.at+f.lasts > lasts {
				t.Fatalf("seed %d: at %s %s", seed, f.at, f)
			}
			until[f.victim()] = f.at + f.lasts
		}
	}
}

func TestNoClockIsSetBackTooFar(t *testing.T) {
	back := 0
	for seed := range uint64(100) {
		shows := make([]time.Duration, len(tested)) // by which each clock is off
		newest := make([]time.Duration, len(tested))
		for _, f := range schedule(seed, 10*time.Minute, tested[:1], testedShops, 2) {
			if f.kind != setStoreClock && f.kind != loseStore {
				continue
			}
			at := f.at + f.lasts
			newest[f.target] = max(newest[f.target], at+shows[f.target])
			shows[f.target] += f.by
			if lag := newest[f.target] - at - shows[f.target]; lag > longestBack+8*time.Second {
				t.Errorf("seed %d: %s leaves the clock %s behind", seed, f, lag)
			} else if lag > 10*time.Second {
				back++
			}
		}
	}
	if back < 20 {
		t.Errorf("clocks are behind after %d steps", back)
	}
}

package notices

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var checkout = types.NamespacedName{Namespace: "shop", Name: "checkout"}

// TestChangesInQuickSuccessionAreOne: a name is named at some instants, and passed on at others.
func TestChangesInQuickSuccessionAreOne(t *testing.T) {
	every := func(step, until int) (at []int) {
		for ms := 0; ms < until; ms += step {
			at = append(at, ms)
		}
		return at
	}
	for name, tc := range map[string]struct {
		named  []int // ms
		passed []int
	}{
		"one change":                   {[]int{0}, []int{0}},
		"two that are far apart":       {[]int{0, 50}, []int{0, 50}},
		"two at once":                  {[]int{0, 0}, []int{0, 50}},
		"two in quick succession":      {[]int{0, 49}, []int{0, 99}},
		"one just after the second":    {[]int{0, 49, 100}, []int{0, 99, 150}},
		"one some time after":          {[]int{0, 49, 149}, []int{0, 99, 149}},
		"many":                         {every(1, 401), []int{0, 450}},
		"many that take long":          {every(1, 1200), []int{0, 501, 1001, 1249}},
		"some that are not quick":      {every(50, 200), []int{0, 50, 100, 150}},
		"some that are just too quick": {every(49, 200), []int{0, 246}},
	} {
		t.Run(name, func(t *testing.T) {
			g, began, named, passed := gathering{}, time.Unix(0, 0), tc.named, []int(nil)
			for ms := range 2000 {
				now := began.Add(time.Duration(ms) * time.Millisecond)
				for _, got := range g.due(now) {
					if got != checkout {
						t.Errorf("%s is due", got)
					}
					passed = append(passed, ms)
				}
				for ; len(named) > 0 && named[0] == ms; named = named[1:] {
					if g.add(checkout, now) {
						passed = append(passed, ms)
					}
				}
			}
			if got, want := fmt.Sprint(passed), fmt.Sprint(tc.passed); got != want {
				t.Errorf("passed on at %s, want %s", got, want)
			}
			if len(g) > 0 {
				t.Errorf("it remembers %v", g)
			}
		})
	}
}

// TestNamesAreGatheredByThemselves: what is said of one has no other wait.
func TestNamesAreGatheredByThemselves(t *testing.T) {
	g, now := gathering{}, time.Unix(0, 0)
	g.add(checkout, now)
	g.add(checkout, now)
	if !g.add(types.NamespacedName{Namespace: "shop", Name: "search"}, now) {
		t.Error("the first change of another name waits")
	}
	if got := g.due(now.Add(quiet)); len(got) != 1 || got[0] != checkout {
		t.Errorf("due are %v, want %s alone", got, checkout)
	}
}

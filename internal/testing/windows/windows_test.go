package windows_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/windows"
)

func TestAt(t *testing.T) {
	const length = 5 * time.Second
	for _, c := range []struct{ at, want int64 }{{0, 0}, {4_999_999, 0}, {5_000_000, 5_000_000}, {12_000_001, 10_000_000}} {
		if got := windows.At(time.UnixMicro(c.at), length).UnixMicro(); got != c.want {
			t.Errorf("the window of %d µs begins at %d, want %d", c.at, got, c.want)
		}
	}
}

// atLeast wants windows that admitted as much, and fails on those below zero.
type atLeast int

func (w atLeast) Match(actual any) (bool, error) {
	if actual.(int) < 0 {
		return false, errors.New("below zero")
	}
	return actual.(int) >= int(w), nil
}

func (w atLeast) FailureMessage(any) string { return "too little" }

func TestInARow(t *testing.T) {
	for name, c := range map[string]struct {
		n       int
		admits  []int // and zero from then on
		seen    []int
		failure string
	}{
		"at once":                        {n: 2, admits: []int{7, 7, 7}, seen: []int{7, 7}},
		"after one that is not":          {n: 2, admits: []int{7, 3, 7, 8}, seen: []int{7, 3, 7, 8}},
		"never":                          {n: 2, admits: []int{7, 3, 7}, failure: "no 2 in a row"},
		"one that cannot be judged":      {n: 1, admits: []int{-1, 7}, failure: "below zero"},
		"why the last is not is in it":   {n: 1, failure: "too little"},
		"the twelfth is the last chance": {n: 1, admits: []int{11: 7}, seen: []int{11: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			seen, err := windows.InARow(c.n, atLeast(7), func(i int) int {
				if i < len(c.admits) {
					return c.admits[i]
				}
				return 0
			})
			if c.failure != "" {
				if err == nil || !strings.Contains(err.Error(), c.failure) {
					t.Errorf("the error is %v, want one with %q", err, c.failure)
				}
				return
			}
			if err != nil || !slices.Equal(seen, c.seen) {
				t.Errorf("seen %v, %v; want %v", seen, err, c.seen)
			}
		})
	}
}

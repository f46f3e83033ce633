package main

import (
	"testing"
	"time"
)

func TestWindowsOfTheVictim(t *testing.T) {
	for n, good := range map[int]bool{0: false, 134: false, 135: true, victimLimit: true, victimLimit + 1: false} {
		if err := windowProblem(time.Time{}, n); (err == nil) != good {
			t.Errorf("%d admitted: error %v, want none: %t", n, err, good)
		}
	}
}

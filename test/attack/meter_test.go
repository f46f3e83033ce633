package main

import (
	"os"
	"testing"
)

func TestProblemsOfAProcess(t *testing.T) {
	l := &limited{name: "sidecar", limit: 100 << 20, pid: func() int { return 7 }}
	for name, tc := range map[string]struct {
		began int
		peak  int64
		good  bool
	}{
		"as it was":                 {7, 85 << 20, true},
		"too much memory":           {7, 86 << 20, false},
		"started again":             {6, 0, false},
		"was not there when it all": {0, 0, false},
	} {
		l.began = tc.began
		if err := l.problem(tc.peak); (err == nil) != tc.good {
			t.Errorf("%s: error %v, want none: %t", name, err, tc.good)
		}
	}
}

func TestResidentMemory(t *testing.T) {
	n, err := residentOf(os.Getpid())
	if err != nil || n < 1<<20 || n > 1<<40 {
		t.Errorf("%d bytes, error %v", n, err)
	}
}

// TestAPeakIsTakenOnce: a peak belongs to one row.
func TestAPeakIsTakenOnce(t *testing.T) {
	l := &limited{pid: func() int { return 0 }, peak: 5}
	if first, second := l.take(), l.take(); first != 5 || second != 0 {
		t.Errorf("peaks %d and %d, want 5 and 0", first, second)
	}
}

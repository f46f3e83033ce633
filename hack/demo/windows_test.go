package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWindowIsJudgedByWhatReachedTheApplication(t *testing.T) {
	for name, tc := range map[string]struct {
		offered, admitted int64
		wantOver          int64
		wantUnused        float64
	}{
		"the limit and no more under overload":    {offered: 2000, admitted: 500},
		"all of a small demand":                   {offered: 200, admitted: 200},
		"more than the limit is overshoot":        {offered: 2000, admitted: 501, wantOver: 1},
		"less than could be had is unused":        {offered: 2000, admitted: 400, wantUnused: 20},
		"less than a small demand is unused, too": {offered: 200, admitted: 100, wantUnused: 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := window{limit: 500, offered: tc.offered, admitted: tc.admitted}
			if w.overshoot() != tc.wantOver || w.unused() != tc.wantUnused {
				t.Errorf("Δ %d and U %v, want %d and %v", w.overshoot(), w.unused(), tc.wantOver, tc.wantUnused)
			}
		})
	}
}

func TestHistoryFollowsThePolicy(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	h := history{began: at(5)}
	h.open(at(7), policyView{limit: 500, window: 20 * time.Second})
	h.open(at(8), policyView{limit: 600, window: 20 * time.Second}) // raised
	h.open(at(9), policyView{limit: 100, window: 20 * time.Second}) // what was admitted before stays admitted
	h.open(at(21), policyView{limit: 100, window: 20 * time.Second})
	h.open(at(33), policyView{limit: 100, window: 10 * time.Second}) // waits for the open window
	h.open(at(41), policyView{limit: 100, window: 10 * time.Second})

	want := []window{
		{start: at(0), length: 20 * time.Second, limit: 600},
		{start: at(20), length: 20 * time.Second, limit: 100, whole: true},
		{start: at(40), length: 10 * time.Second, limit: 100, whole: true},
	}
	if diff := cmp.Diff(want, h.windows, cmp.AllowUnexported(window{})); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

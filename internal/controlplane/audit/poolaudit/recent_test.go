package poolaudit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/controlplane/audit"
)

func TestUnusedSlotsAreThoseFreeWhileRequestsWereRefused(t *testing.T) {
	refuses := func(who int) func(int, *Report) {
		return func(i int, said *Report) {
			if i == who {
				said.Refused++
			}
		}
	}
	tests := map[string]struct {
		said func(i int, said *Report)
		want int32
	}{
		"nobody refuses, whatever is free": {
			said: func(_ int, said *Report) { said.InFlight = 0 }, want: 0,
		},
		"all is in use": {said: refuses(0), want: 0},
		"one refuses at its share, the other idles": {
			said: func(i int, said *Report) {
				refuses(0)(i, said)
				if i == 1 {
					said.InFlight = 1
				}
			}, want: 4000,
		},
		"one that refuses had its peak in flight when it did": {
			said: func(i int, said *Report) {
				refuses(0)(i, said)
				said.InFlight = map[int]int64{0: 0, 1: 4}[i]
			}, want: 1000,
		},
		"one that is fenced refuses for another reason": {
			said: func(i int, said *Report) {
				refuses(0)(i, said)
				said.InFlight, said.Fenced = 0, i == 0
			}, want: 0,
		},
		"more in flight than the limit is not less than nothing": {
			said: func(i int, said *Report) { refuses(0)(i, said); said.InFlight, said.Peak = 9, 9 }, want: 0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReporting(2, Config{Generation: 1, Bounded: true})
			if f := r.seconds(9, tc.said); f.UnderUtilization != nil {
				t.Errorf("after nine seconds: %+v, want nothing before a span is over", f.UnderUtilization)
			}
			f := r.seconds(6, tc.said)
			if want := (&audit.UnderUtilization{Observed: tc.want, Worst: tc.want}); cmp.Diff(want, f.UnderUtilization) != "" {
				t.Errorf("unused = %+v, want %+v", f.UnderUtilization, want)
			}
			f = r.seconds(25, func(_ int, said *Report) { said.InFlight, said.Fenced = 5, false })
			if want := (&audit.UnderUtilization{Worst: tc.want}); cmp.Diff(want, f.UnderUtilization) != "" {
				t.Errorf("later: unused = %+v, want the worst only: %+v", f.UnderUtilization, want)
			}
		})
	}
}

// A sample sums up an interval of all holders, however often Advance is called in it.
func TestUnusedIsTakenOnceInAnInterval(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	r.seconds(1, nil)
	for range 15 {
		for _, h := range r.members {
			r.now = r.now.Add(time.Second / 2)
			said := r.said[h]
			said.InFlight, said.Refused = 0, said.Refused+1
			r.Report(h, *said, r.now)
			r.Advance(r.now)
		}
	}
	if f := r.Figures(r.now); f.UnderUtilization == nil || f.UnderUtilization.Worst != 0 {
		t.Errorf("unused = %+v although both refuse at their share", f.UnderUtilization)
	}
}

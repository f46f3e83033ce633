package audit

import (
	"testing"
	"time"
)

func TestHoldersComeAndGo(t *testing.T) {
	testLimit(t, map[string]limitCase{
		"a holder that never closes its row is given up, and what it admitted counts": {
			run: func(f *fleet) {
				f.report("a", final(0, 60, 0))
				f.report("b", open(0, 70))
				for range 13 {
					f.pass("a", "b")
				}
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{Worst: 30, WorstEnd: noon.Add(time.Second), AtLeast: true},
		},
		"a holder that vanished leaves its window unknown": {
			run: func(f *fleet) {
				f.report("a", open(0, 10))
				f.report("b", open(0, 10))
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: ReportsMissing,
		},
		"a window that nobody spoke of when a holder vanished is unknown too": {
			run: func(f *fleet) {
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: ReportsMissing,
		},
		"windows after a holder vanished are measured": {
			run: func(f *fleet) {
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				for range 5 {
					f.pass("a")
				}
				f.report("a", final(5, 120, 0))
				f.pass("a")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: noon.Add(6 * time.Second), Observed: 20, Worst: 20, WorstEnd: noon.Add(6 * time.Second), AtLeast: true},
			wantUnused:  &UnderUtilization{},
		},
		"a holder that vanished after it accounted for a window leaves it known": {
			run: func(f *fleet) {
				f.report("b", final(0, 50, 0))
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: Measured,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second), AtLeast: true},
			wantUnused:  &UnderUtilization{},
		},
		"a holder that comes back accounts for what it left unknown": {
			run: func(f *fleet) {
				f.report("b", open(0, 50))
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
				f.Join(holder("b"), f.now)
				f.report("b", final(0, 90, 0))
				f.pass("a", "b")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second), Observed: 10, Worst: 10, WorstEnd: noon.Add(time.Second)},
			wantUnused:  &UnderUtilization{},
		},
		"a holder that comes back has accounted for nothing yet": {
			run: func(f *fleet) {
				f.Lose(holder("b"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
				f.Join(holder("b"), f.now)
				f.Advance(f.now)
			},
			wantVerdict: ReportsMissing,
		},
		"what a holder resends after a break may be from before another vanished": {
			run: func(f *fleet) {
				f.Lose(holder("b"), f.now)
				f.Lose(holder("a"), f.now)
				f.now = f.now.Add(10 * time.Second)
				f.Join(holder("a"), f.now)
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: Starting,
		},
		"a holder that leaves in good order has reported all": {
			run: func(f *fleet) {
				f.report("b", open(0, 90))
				f.Leave(holder("b"))
				f.report("a", final(0, 20, 0))
				f.pass("a")
			},
			wantVerdict: Exceeded,
			want:        &Overshoot{WindowEnd: noon.Add(time.Second), Observed: 10, Worst: 10, WorstEnd: noon.Add(time.Second)},
			wantUnused:  &UnderUtilization{},
		},
		"a holder's last word does not end the window of the others": {
			run: func(f *fleet) {
				f.report("b", final(0, 90, 0))
				f.Leave(holder("b"))
				f.Advance(f.now)
				f.Pass(holder("a"), f.now.Add(501*time.Millisecond))
				f.Pass(holder("a"), f.now.Add(999*time.Millisecond))
				f.Pass(holder("a"), f.now.Add(1002*time.Millisecond))
				f.Advance(f.now.Add(999 * time.Millisecond))
			},
			wantVerdict: Starting,
		},
	})
}

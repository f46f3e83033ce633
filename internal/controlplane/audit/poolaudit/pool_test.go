package poolaudit

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/controlplane/audit"
)

var poolStart = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// A reporting is a pool whose members report once a second.
type reporting struct {
	*Pool
	now     time.Time
	members []audit.Holder
	said    map[audit.Holder]*Report
}

func newReporting(members int, c Config) *reporting {
	r := &reporting{Pool: New(time.Second, c), now: poolStart, said: map[audit.Holder]*Report{}}
	for i := range members {
		h := audit.NewHolder(fmt.Sprint("uid-", i), "1")
		r.members = append(r.members, h)
		r.said[h] = &Report{
			Generation: c.Generation, Share: 5, Ceiling: 5, InFlight: 5, Peak: 5, Limit: 10, Holders: int64(members), Occupied: 10, Bound: 10,
		}
		r.Join(h, r.now)
	}
	return r
}

// second lets a second pass in which each member admits 10 requests and the change
// happens to what they say.
func (r *reporting) second(change func(i int, said *Report)) {
	r.now = r.now.Add(time.Second)
	for i, h := range r.members {
		r.said[h].Admitted += 10
		if change != nil {
			change(i, r.said[h])
		}
		r.Report(h, *r.said[h], r.now)
	}
	r.Advance(r.now)
}

func (r *reporting) seconds(n int, change func(i int, said *Report)) Figures {
	for range n {
		r.second(change)
	}
	return r.Figures(r.now)
}

func TestOvershootOfAPool(t *testing.T) {
	tests := map[string]struct {
		config Config
		said   func(said *Report)
		want   audit.Verdict
		worst  int64
		free   bool // unbounded
	}{
		"what is in flight fits": {config: Config{Generation: 1, Bounded: true}, said: func(*Report) {}, want: audit.Measured},
		"one too many": {
			config: Config{Generation: 1, Bounded: true}, said: func(said *Report) { said.Occupied = 11 }, want: audit.Exceeded, worst: 1,
		},
		"one too many where nothing is promised": {
			config: Config{Generation: 1}, said: func(said *Report) { said.Occupied = 11 }, want: audit.Measured, worst: 1, free: true,
		},
		"one too many of an older generation": {
			config: Config{Generation: 1, Bounded: true},
			said:   func(said *Report) { said.Occupied, said.Generation = 11, 0 }, want: audit.Starting,
		},
		"a coordinator that has not answered": {
			config: Config{Generation: 1, Bounded: true},
			said:   func(said *Report) { said.Occupied, said.Bound, said.Limit = 0, 0, 0 }, want: audit.Starting,
		},
		"a pod that admits by itself": {
			config: Config{Generation: 1, Bounded: true},
			said:   func(said *Report) { said.Share, said.Occupied = 0, 17 }, want: audit.FailOpen, worst: 7, free: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReporting(2, tc.config)
			f := r.seconds(2, func(i int, said *Report) {
				if i == 0 {
					tc.said(said)
					return
				}
				said.Generation, said.Limit, said.Bound = r.said[r.members[0]].Generation, r.said[r.members[0]].Limit, r.said[r.members[0]].Bound
				said.Occupied = said.Bound
			})
			if f.Verdict != tc.want {
				t.Errorf("verdict = %v, want %v", f.Verdict, tc.want)
			}
			switch {
			case f.Overshoot == nil:
				if tc.worst > 0 {
					t.Error("no overshoot was measured")
				}
			case f.Overshoot.Worst != tc.worst || f.Overshoot.Observed != tc.worst || f.Overshoot.Unbounded != tc.free:
				t.Errorf("overshoot = %+v, want %d", f.Overshoot, tc.worst)
			}
		})
	}
}

// A bound that was exceeded stays so until another generation, and the observed overshoot
// goes.
func TestABrokenBoundIsRememberedForItsGeneration(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	r.second(func(i int, said *Report) { said.Occupied = 13 })
	broke := r.now
	f := r.seconds(13, func(_ int, said *Report) { said.Occupied = 10 })
	if f.Overshoot.Observed != 3 {
		t.Errorf("observed %d in the last ten to twenty seconds, want 3", f.Overshoot.Observed)
	}
	f = r.seconds(17, func(_ int, said *Report) { said.Occupied = 10 })
	if want := (&Overshoot{Worst: 3, WorstTime: broke}); f.Verdict != audit.Exceeded || cmp.Diff(want, f.Overshoot) != "" {
		t.Errorf("verdict %v, overshoot %+v, want a worst one of 3", f.Verdict, f.Overshoot)
	}
	r.Reconfigure(Config{Generation: 2, Bounded: true}, r.now)
	if f := r.Figures(r.now); f.Verdict != audit.Starting || f.Overshoot != nil || f.UnderUtilization != nil {
		t.Errorf("figures of another generation = %+v, want none yet", f)
	}
	f = r.seconds(1, func(_ int, said *Report) { said.Generation = 2 })
	if f.Verdict != audit.Measured {
		t.Errorf("verdict %v, want Measured", f.Verdict)
	}
}

// Requests that a pod admitted by itself may run on when it has its share again.
func TestLocalAdmissionsDoNotCountAgainstTheBound(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	r.second(func(_ int, said *Report) { said.Share = 0 })
	f := r.seconds(1, func(_ int, said *Report) { said.Share, said.Occupied = 5, 20 })
	if f.Verdict != audit.Measured || !f.Overshoot.Unbounded || f.Overshoot.Worst != 10 {
		t.Errorf("verdict %v, overshoot %+v, want one that nothing bounds", f.Verdict, f.Overshoot)
	}
	f = r.seconds(61, nil)
	if f.Verdict != audit.Exceeded {
		t.Errorf("a minute later: verdict %v, want Exceeded", f.Verdict)
	}
}

func TestAPodThatAdmittedByItselfAndLeftDoesNoMore(t *testing.T) {
	r := newReporting(2, Config{Generation: 1, Bounded: true})
	r.seconds(1, func(i int, said *Report) { said.Ceiling += int64(i) })
	r.Leave(r.members[1])
	if f := r.Figures(r.now); f.Verdict != audit.Measured {
		t.Errorf("verdict %v, want Measured", f.Verdict)
	}
}

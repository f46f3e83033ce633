package audit

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// runsEnv is how many worlds TestFiguresNeverLie drives.
const runsEnv = "WEIR_AUDIT_RUNS"

// overshoot returns Δ of a window.
func (w *world) overshoot(id windowID, limit int64) int64 {
	var worst int64
	for _, n := range w.admitted[id] {
		worst = max(worst, n-limit)
	}
	return worst
}

// check compares what is shown with the truth.
func (w *world) check() {
	absent := slices.ContainsFunc(w.sidecars, func(s *sidecar) bool { return !s.member })
	got := w.leader.overshoot()
	for _, r := range w.rates {
		f := w.leader.figures[windowsOf(r)]
		if f.worst > w.worst[windowsOf(r)] {
			w.t.Fatalf("seed %d at %s: worst of %v is %d, in truth %d", w.seed, w.now.Sub(noon), r.Window, f.worst, w.worst[windowsOf(r)])
		}
		last := w.leader.last(f)
		if absent || last.WindowEnd.IsZero() {
			continue // which the status shows as unknown
		}
		id := f.shown
		if !time.UnixMicro(int64(id.end())).Equal(last.WindowEnd) {
			w.t.Fatalf("seed %d at %s: shows the window that ended at %s, not %v", w.seed, w.now.Sub(noon), last.WindowEnd, id)
		}
		if truth := w.overshoot(id, r.Limit); last.Observed != truth {
			w.t.Fatalf("seed %d at %s: Δ of window %d of %v is %d, in truth %d", w.seed, w.now.Sub(noon), id.index, r.Window, last.Observed, truth)
		}
	}
	if got == nil || got.AtLeast {
		return
	}
	if w.led > 0 {
		w.t.Fatalf("seed %d at %s: a leader that took over says that it knows all", w.seed, w.now.Sub(noon))
	}
	for _, r := range w.rates {
		f := w.leader.figures[windowsOf(r)]
		for id, keys := range w.admitted {
			held := w.leader.windows[id]
			if id.windows != windowsOf(r) || held != nil && !held.measured || w.now.Add(w.ahead[id.since]).Sub(time.UnixMicro(int64(id.end()))) < 20*time.Second {
				continue
			}
			for value, n := range keys {
				if n-r.Limit > f.worst {
					w.t.Fatalf("seed %d at %s: worst of %v is exactly %d, in truth window %d admitted %d of %q", w.seed, w.now.Sub(noon), r.Window, f.worst, id.index, n, value)
				}
			}
		}
	}
}

// TestFiguresNeverLie drives the books of sidecars, their reports and the audit with streams
// that break for seconds to hours, processes that are killed, keys that are forgotten,
// leaders that change and moves to stores whose clocks differ: Δ is always the true one, unknown, or given as a lower bound.
func TestFiguresNeverLie(t *testing.T) {
	runs := 100
	if n, err := strconv.Atoi(os.Getenv(runsEnv)); err == nil {
		runs = n
	}
	var exact, exceeded int
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 600 + w.rng.IntN(600) {
				w.step(false)
			}
			if seed%16 == 0 {
				w.wait(time.Hour + w.upTo(2*time.Hour))
			}
			for _, s := range w.sidecars { // all come back
				s.returns = earlier(s.returns, w.now)
			}
			for range 200 {
				w.step(true)
			}
			f := w.leader.Figures(w.now)
			if f.Overshoot == nil || f.Overshoot.AtLeast {
				return
			}
			exact++
			if f.Overshoot.Worst > 0 {
				exceeded++
			}
			if (f.Verdict == Exceeded) != (f.Overshoot.Worst > 0) {
				t.Errorf("verdict is %v with %+v", f.Verdict, f.Overshoot)
			}
		})
	}
	t.Logf("in %d of %d runs the worst Δ was known exactly to the end, in %d of them there was one", exact, runs, exceeded)
}

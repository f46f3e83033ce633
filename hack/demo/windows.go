package main

import (
	"time"

	"github.com/weir-dev/weir/internal/devcluster/traffic"
)

// A window is one store window as it was seen from outside: the load generator
// counts what was offered, the application what reached it.
type window struct {
	start  time.Time
	length time.Duration
	limit  int64 // the highest while it was open
	whole  bool  // load ran from before its start

	offered, admitted, refused, failed int64
}

func (w *window) end() time.Time { return w.start.Add(w.length) }

// overshoot returns Δ: what was admitted beyond the limit.
func (w *window) overshoot() int64 { return max(0, w.admitted-w.limit) }

// unused returns U in percent: demand that was refused although budget was there.
func (w *window) unused() float64 {
	return 100 * float64(max(0, min(w.offered, w.limit)-w.admitted)) / float64(w.limit)
}

// settle is how long after its end a window is final: until requests sent in it
// are answered.
const settle = 500 * time.Millisecond

// history is the windows of one policy, the oldest first, the last one open.
type history struct {
	began   time.Time // of the load
	windows []window
}

// observe counts anew at an instant and returns the windows that became final.
func (h *history) observe(now time.Time, p policyView, tally *traffic.Tally, load *traffic.Load) []window {
	h.open(now, p)
	var final []window
	for i := range h.windows {
		w := &h.windows[i]
		if now.Sub(w.end()) > settle+time.Second {
			continue
		}
		count(w, tally, load)
		if age := now.Sub(w.end()); age >= settle && age-settle < tickEvery {
			final = append(final, *w)
		}
	}
	return final
}

// open makes sure that the window of this instant is there. The store's clock is
// this machine's, and windows begin at multiples of their length.
func (h *history) open(now time.Time, p policyView) {
	start := time.UnixMicro(now.UnixMicro() / p.window.Microseconds() * p.window.Microseconds())
	if n := len(h.windows); n > 0 {
		last := &h.windows[n-1]
		if last.length != p.window && now.Before(last.end()) {
			return // a changed length begins when the open window ends
		}
		if last.start.Equal(start) {
			last.limit = max(last.limit, p.limit)
			return
		}
	}
	h.windows = append(h.windows, window{start: start, length: p.window, limit: p.limit, whole: !start.Before(h.began)})
}

func count(w *window, tally *traffic.Tally, load *traffic.Load) {
	w.admitted = tally.Between(w.start, w.end())
	w.offered = load.Sum(w.start, w.end(), func(o *traffic.Outcomes) *traffic.Series { return &o.Offered })
	w.refused = load.Sum(w.start, w.end(), func(o *traffic.Outcomes) *traffic.Series { return &o.Refused })
	w.failed = load.Sum(w.start, w.end(), func(o *traffic.Outcomes) *traffic.Series { return &o.Failed })
}

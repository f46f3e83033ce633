package main

import (
	"cmp"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// A window is one store window as it was seen from outside: the load generator
// counts what was offered, the application what reached it.
type window struct {
	start  time.Time
	length time.Duration
	limit  int64 // the highest while it was open
	whole  bool  // load ran from before its start
	final  bool  // all requests sent in it are answered

	unbounded string // why more than the limit may rightly be admitted; "": it may not
	edited    bool   // the policy changed inside it
	shared    bool   // something else may refuse as well

	offered, admitted, refused, failed int64
}

func (w *window) end() time.Time { return w.start.Add(w.length) }

// overlaps says whether the window has an instant in from to to.
func (w *window) overlaps(from, to time.Time) bool { return w.start.Before(to) && w.end().After(from) }

// overshoot returns Δ: what was admitted beyond the limit. It is not ok when the
// limit was not the bound of the whole window.
func (w *window) overshoot() (over int64, ok bool) {
	return max(0, w.admitted-w.limit), w.unbounded == ""
}

// unused returns U in percent: demand that was refused although budget was there.
// It is not ok when the budget was not the same in the whole window, or when it
// was not the only one.
func (w *window) unused() (percent float64, ok bool) {
	if w.unbounded != "" || w.edited || w.shared || w.limit == 0 {
		return 0, false
	}
	return 100 * float64(max(0, min(w.offered, w.limit)-w.admitted)) / float64(w.limit), true
}

// note says what else one has to know to read the window's row.
func (w *window) note(now time.Time) string {
	open := now.Before(w.end())
	switch {
	case w.unbounded != "":
		return w.unbounded
	case w.edited:
		return "edited inside it"
	case open && !w.whole && w.admitted == 0:
		return "open: nothing is granted before the first whole window"
	case open:
		return "open"
	case !w.whole:
		return "began before the load"
	case w.shared:
		return "other rates refuse, too"
	default:
		return ""
	}
}

const (
	// settle is how long after its end a window is final: until requests sent in
	// it are answered.
	settle = 500 * time.Millisecond
	// reach is how long after an edit the last sidecar may still decide by the
	// policy before it.
	reach = time.Second
)

// history is the windows of one policy, the oldest first, the last one open.
type history struct {
	began   time.Time // of the load
	windows []window

	at   time.Time  // of the last look at the policy
	last policyView // what was seen then
	edit edit
}

// edit is the last change of the policy.
type edit struct {
	from, to      time.Time // it took effect in between
	before, after policyView
}

// observe looks at an instant, lets count fill in the windows that are not final
// yet, and returns those that became it.
func (h *history) observe(now time.Time, p policyView, count func(*window)) []window {
	h.open(now, p)
	var final []window
	for i := range h.windows {
		w := &h.windows[i]
		if w.final {
			continue
		}
		count(w)
		if now.Sub(w.end()) >= settle {
			w.final = true
			final = append(final, *w)
		}
	}
	return final
}

// open makes sure that the window of this instant is there, and that all windows
// know the policies they were open under.
func (h *history) open(now time.Time, p policyView) {
	if p.gone() {
		p.window = h.last.window
	}
	if !h.at.IsZero() && p.id != h.last.id {
		h.edit = edit{from: h.at, to: now.Add(reach), before: h.last, after: p}
	}
	h.at, h.last = now, p
	h.extend(now, p)
	for i := range h.windows {
		w := &h.windows[i]
		if w.overlaps(now, now.Add(1)) {
			w.rule(p)
		}
		if w.overlaps(p.reset.Add(-time.Second), p.reset.Add(time.Second)) {
			w.unbounded = cmp.Or(w.unbounded, "set back inside it: the limit was admitted once more")
		}
		if w.overlaps(h.edit.from, h.edit.to) {
			w.edited = true
			w.rule(h.edit.before)
			w.rule(h.edit.after)
		}
	}
}

// extend appends the window of this instant unless it is there. The store's clock
// is this machine's, and windows begin at multiples of their length.
func (h *history) extend(now time.Time, p policyView) {
	w := window{
		start:  time.UnixMicro(now.UnixMicro() / p.window.Microseconds() * p.window.Microseconds()),
		length: p.window,
	}
	w.whole = !w.start.Before(h.began)
	if n := len(h.windows); n > 0 {
		last := &h.windows[n-1]
		if now.Before(last.end()) {
			return // a changed length begins when the open window ends
		}
		if w.start.Before(last.end()) {
			w.unbounded = "shares time with the window before it"
		}
	}
	h.windows = append(h.windows, w)
}

// rule takes over what a policy means for a window in which it was in force.
func (w *window) rule(p policyView) {
	if p.window == w.length {
		w.limit = max(w.limit, p.limit)
	}
	w.unbounded = cmp.Or(w.unbounded, p.unbounded)
	w.shared = w.shared || p.shared
}

// count fills in what became of the requests of a window.
func (d *policyShow) count(w *window) {
	w.admitted = 0
	for _, pod := range d.pods.sorted() {
		w.admitted += d.tally.Pod(pod).Between(w.start, w.end())
	}
	sum := func(kind func(*traffic.Outcomes) *traffic.Series) int64 { return d.load.Sum(w.start, w.end(), kind) }
	w.offered = sum(func(o *traffic.Outcomes) *traffic.Series { return &o.Offered })
	w.refused = sum(func(o *traffic.Outcomes) *traffic.Series { return &o.Refused })
	w.failed = sum(func(o *traffic.Outcomes) *traffic.Series { return &o.Failed })
}

package limiter

import "fmt"

// Windows are the open windows of one limit and key, one a rate. It is a value:
// assignment copies it and == compares it. For algorithms without windows they
// are the aligned windows that contain the instant of the grant; Granted is 0.
type Windows struct {
	N    int // windows in use
	Open [MaxRates]OpenWindow
}

// An OpenWindow is one window of a rate and what has been granted from it.
type OpenWindow struct {
	Rate
	Index   int64 `json:"index"`   // number of the window, see Rate.Offset and Rate.Monthly
	Granted int64 `json:"granted"` // units granted, returns taken off
}

// Slice returns the windows in use. It aliases w.
func (w *Windows) Slice() []OpenWindow { return w.Open[:w.N] }

// Start returns the instant the window begins.
func (w OpenWindow) Start() Instant { return w.start(w.Index) }

// End returns the first instant after the window.
func (w OpenWindow) End() Instant { return w.start(w.Index + 1) }

// Contains reports whether the window is open at now.
func (w OpenWindow) Contains(now Instant) bool { return w.index(now) == w.Index }

// WindowAt returns the window of the rate that contains now.
func (r Rate) WindowAt(now Instant) OpenWindow { return OpenWindow{Rate: r, Index: r.index(now)} }

// Indices returns the numbers of the first and the last window that a store's clock can
// show, those of instant 0 and of MaxInstant. A window's number says nothing of its
// length: months count from the year 0, and with a negative Offset the first is below 0.
func (r Rate) Indices() (first, last int64) { return r.index(0), r.index(MaxInstant) }

// Validate reports windows that no result has named. The begins and ends of all others
// can be computed without an overflow.
func (w Windows) Validate() error {
	if w.N < 1 || w.N > MaxRates {
		return fmt.Errorf("windows has %d entries, must be 1 to %d", w.N, MaxRates)
	}
	for i, v := range w.Slice() {
		if err := v.validate(); err != nil {
			return fmt.Errorf("windows[%d].rate%w", i, err)
		}
		if first, last := v.Indices(); v.Index < first || v.Index > last {
			return fmt.Errorf("windows[%d].index is %d, outside %d to %d, which are the windows of the years 1970 to 2112", i, v.Index, first, last)
		}
		for j := range i {
			if w.Open[j].sameWindows(v.Rate) {
				return fmt.Errorf("windows[%d].rate has the windows of windows[%d].rate", i, j)
			}
		}
	}
	return nil
}

// SameWindows reports whether w and v are windows of the same lengths and
// indices in the same order, whatever was granted from them.
func (w Windows) SameWindows(v Windows) bool {
	if w.N != v.N {
		return false
	}
	for i := range w.N {
		if !w.Open[i].sameWindows(v.Open[i].Rate) || w.Open[i].Index != v.Open[i].Index {
			return false
		}
	}
	return true
}

func (w *Windows) add(v OpenWindow) {
	w.Open[w.N] = v
	w.N++
}

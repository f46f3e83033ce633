package limiter

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

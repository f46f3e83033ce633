package limiter

import "fmt"

// Op is what a command asks of a machine.
type Op uint8

// The operations.
const (
	// Take asks for at least Min and at most Want units.
	Take Op = iota
	// Return gives back Want unspent units of the grant that Windows names. It
	// takes effect only while exactly those windows are open, so a late return
	// is forfeited rather than credited to another window. It is not idempotent:
	// whoever sends it sends it once.
	Return
)

// A Command is one request to a machine.
type Command struct {
	Op      Op
	Min     int64   // Take: the least useful amount, at least 1
	Want    int64   // Take: the most wanted, at least Min; Return: the amount given back
	Windows Windows // Return: the windows of the grant
	Memory  Memory  // what the store that runs the machine still remembers
}

// Validate reports a command that no caller may send: an unknown operation, an
// amount below 1, or more wanted than the least useful amount allows. A store
// checks every command that came over a wire before it runs Step.
func (c Command) Validate() error {
	switch {
	case c.Op > Return:
		return fmt.Errorf("op is %d, which is neither Take (%d) nor Return (%d)", c.Op, Take, Return)
	case c.Want < 1:
		return fmt.Errorf("want is %d, must be at least 1", c.Want)
	case c.Op == Take && (c.Min < 1 || c.Min > c.Want):
		return fmt.Errorf("min is %d, outside 1 to want (%d)", c.Min, c.Want)
	case c.Windows.N < 0 || c.Windows.N > MaxRates:
		return fmt.Errorf("windows has %d entries, more than %d", c.Windows.N, MaxRates)
	}
	return nil
}

// Memory is what a store knows of its own past. Windows that began outside it
// may hold grants the store has forgotten, so nothing more is granted from them.
// The zero value remembers everything.
type Memory struct {
	Since Instant // start of the store's uninterrupted memory

	// Gaps are the spans in which the store did not serve although its counts
	// outlived them: a ledger that was handed over knows nothing of what holders
	// did meanwhile on their own. Windows that began in a gap are outside.
	Gaps []Gap

	// Latest is the newest instant at which the store is known to have decided. A
	// clock that shows less has stepped back, and nothing is granted until it has
	// caught up: a state may have expired in the meantime.
	Latest Instant
}

// A Gap is the span [From, To).
type Gap struct{ From, To Instant }

func (m Memory) covers(start Instant) bool {
	for _, g := range m.Gaps {
		if start >= g.From && start < g.To {
			return false
		}
	}
	return start >= m.Since
}

// Reason says why a result grants what it grants.
type Reason uint8

// The reasons.
const (
	Granted         Reason = iota // at least Min was granted, or a return was applied
	Exhausted                     // fewer than Min units are left; RetryAfter says until when
	TooLarge                      // Min exceeds a limit, so no window will ever grant it
	StaleGeneration               // the command's parameters are older than the state's
	ClockBehind                   // the store's clock is before an instant already served
	Amnesia                       // the store may have forgotten grants of an open window
	Forfeited                     // a return named windows that are no longer open
)

var reasonNames = [...]string{
	Granted: "Granted", Exhausted: "Exhausted", TooLarge: "TooLarge", StaleGeneration: "StaleGeneration",
	ClockBehind: "ClockBehind", Amnesia: "Amnesia", Forfeited: "Forfeited",
}

// String returns the reason's name, its number when it has none.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// A Result answers a command. It holds every number a caller has to report, so
// that no caller computes one again.
type Result struct {
	Granted    int64   // units granted or taken back; 0 or between Min and Want
	Remaining  int64   // units the open windows can still grant, never negative
	ExpiresIn  Micros  // until the first open window ends: how long a grant lives
	RetryAfter Micros  // refused: until the command may succeed; 0 when it never will
	Windows    Windows // the windows the grant is charged to, as they are now
	Now        Instant // the store's time of the decision
	Reason     Reason
}

// Windows are the open windows of one limit and key, one a rate. It is a value:
// assignment copies it and == compares it.
type Windows struct {
	N    int // windows in use
	Open [MaxRates]OpenWindow
}

// An OpenWindow is one window of a rate and what has been granted from it.
type OpenWindow struct {
	Rate
	Index   int64 `json:"index"`   // the window spans [Index·Window, (Index+1)·Window)
	Granted int64 `json:"granted"` // units granted, returns taken off
}

// Slice returns the windows in use. It aliases w.
func (w *Windows) Slice() []OpenWindow { return w.Open[:w.N] }

// Start returns the instant the window begins.
func (w OpenWindow) Start() Instant { return Instant(w.Index * int64(w.Window)) }

// End returns the first instant after the window.
func (w OpenWindow) End() Instant { return w.Start().Add(w.Window) }

// SameWindows reports whether w and v are windows of the same lengths and
// indices in the same order, whatever was granted from them.
func (w Windows) SameWindows(v Windows) bool {
	if w.N != v.N {
		return false
	}
	for i := range w.N {
		if w.Open[i].Window != v.Open[i].Window || w.Open[i].Index != v.Open[i].Index {
			return false
		}
	}
	return true
}

func (w *Windows) find(length Micros) *OpenWindow {
	for i := range w.N {
		if w.Open[i].Window == length {
			return &w.Open[i]
		}
	}
	return nil
}

func (w *Windows) add(v OpenWindow) {
	w.Open[w.N] = v
	w.N++
}

package limiter

import "fmt"

// Bounds of a rate. They keep every product and sum of this package below 2^53,
// so that the Lua and SQL ports compute the same integers.
const (
	MaxRates  = 4                        // rates of one limit
	MaxLimit  = int64(1_000_000_000_000) // units per window
	MinWindow = 100 * Millisecond
	MaxWindow = 744 * 3600 * Second // 31 days
	MaxOffset = 8 * Day             // of windows, either way

	// MaxExact is the largest integer whose successor a Lua number represents.
	MaxExact = int64(1)<<53 - 1

	MaxGeneration = MaxExact
)

// A Rate is an amount of cost per length of time.
type Rate struct {
	Limit  int64  `json:"limit"`  // units per window, 1 to MaxLimit
	Window Micros `json:"window"` // microseconds, MinWindow to MaxWindow

	// Burst is the most units at once, 1 to MaxLimit; 0 means Limit. TokenBucket
	// and GCRA only.
	Burst int64 `json:"burst,omitempty"`

	// Offset shifts windows: window n spans [n·Window − Offset, (n+1)·Window − Offset)
	// on the store's clock, so a clock that is Offset ahead sees multiples of
	// Window. Within ±MaxOffset, FixedWindow only.
	Offset Micros `json:"offset,omitempty"`

	// Monthly makes windows calendar months, proleptic Gregorian, of a clock that is
	// Offset ahead of the store's. Window is MaxWindow then, FixedWindow only.
	Monthly bool `json:"monthly,omitempty"`
}

// validate reports a rate that no algorithm works by. The error begins with the field.
func (r Rate) validate() error {
	switch {
	case r.Limit < 1 || r.Limit > MaxLimit:
		return fmt.Errorf(".limit is %d, outside 1 to %d", r.Limit, MaxLimit)
	case r.Window < MinWindow || r.Window > MaxWindow:
		return fmt.Errorf(".window is %dµs, outside 100ms to 744h", r.Window)
	case r.Burst < 0 || r.Burst > MaxLimit:
		return fmt.Errorf(".burst is %d, outside 1 to %d", r.Burst, MaxLimit)
	case r.Offset < -MaxOffset || r.Offset > MaxOffset:
		return fmt.Errorf(".offset is %dµs, more than 8 days", r.Offset)
	case r.Monthly && r.Window != MaxWindow:
		return fmt.Errorf(".window is %dµs, but months have %dµs", r.Window, MaxWindow)
	}
	return nil
}

// sameWindows reports whether both rates have the same windows.
func (r Rate) sameWindows(o Rate) bool {
	return r.Window == o.Window && r.Offset == o.Offset && r.Monthly == o.Monthly
}

// burst returns the most units at once.
func (r Rate) burst() int64 {
	if r.Burst == 0 {
		return r.Limit
	}
	return r.Burst
}

// pace returns the smallest integers with cost/drain = Window/Limit: a unit fills
// a bucket by cost, and a microsecond drains it by drain.
func (r Rate) pace() (cost, drain int64) {
	a, b := r.Limit, int64(r.Window)
	for b != 0 {
		a, b = b, a%b
	}
	return int64(r.Window) / a, r.Limit / a
}

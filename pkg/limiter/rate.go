package limiter

import (
	"errors"
	"fmt"
)

// Bounds of a rate. They keep every product and sum of this package below 2^53,
// so that the Lua and SQL ports compute the same integers.
const (
	MaxRates  = 4                        // rates of one limit
	MaxLimit  = int64(1_000_000_000_000) // units per window
	MinWindow = 100 * Millisecond
	MaxWindow = 744 * 3600 * Second // 31 days

	MaxGeneration = int64(1)<<53 - 1
)

// A Rate admits at most Limit units of cost in every window of length Window.
// Windows are aligned: window n of a rate spans [n·Window, (n+1)·Window) on the
// store's clock.
type Rate struct {
	Limit  int64  `json:"limit"`  // units per window, 1 to MaxLimit
	Window Micros `json:"window"` // microseconds, MinWindow to MaxWindow
}

// index returns the number of the window that contains now.
func (r Rate) index(now Instant) int64 { return int64(now) / int64(r.Window) }

// ValidateRates reports what is wrong with the rates of one limit: their number,
// a value outside its bounds, or two windows of the same length.
func ValidateRates(rates []Rate) error {
	if len(rates) == 0 || len(rates) > MaxRates {
		return fmt.Errorf("a limit has 1 to %d rates, not %d", MaxRates, len(rates))
	}
	var errs []error
	for i, r := range rates {
		if r.Limit < 1 || r.Limit > MaxLimit {
			errs = append(errs, fmt.Errorf("rates[%d].limit is %d, outside 1 to %d", i, r.Limit, MaxLimit))
		}
		if r.Window < MinWindow || r.Window > MaxWindow {
			errs = append(errs, fmt.Errorf("rates[%d].window is %dµs, outside 100ms to 744h", i, r.Window))
		}
		for j := range i {
			if rates[j].Window == r.Window {
				errs = append(errs, fmt.Errorf("rates[%d].window equals rates[%d].window; keep the smaller limit of the two", i, j))
			}
		}
	}
	return errors.Join(errs...)
}

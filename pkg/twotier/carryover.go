package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// openWindows returns a holding without credits of the windows that are open at
// the instant now, as well as the store's clock is known. They have the same lengths
// as the last ones.
func (l *Limiter) openWindows(cfg *settings, last limiter.Windows, now int64) account.Grant {
	at := cfg.breaker.storeClock().Midpoint(now)
	var w limiter.Windows
	ends := limiter.MaxWindow
	for _, v := range last.Slice() {
		open := v.WindowAt(at)
		w.Open[w.N] = open
		w.N++
		ends = min(ends, open.End().Sub(at))
	}
	// A window that is about to end is good for a moment, so that the estimate is not
	// made again for every request.
	deadline := now + max(account.Nanos(ends), int64(time.Millisecond))
	return account.Grant{Deadline: deadline, Charge: account.Charge{Windows: w}}
}

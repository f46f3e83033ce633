package bindings

import (
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A Binding is that of a limit to the budget that it draws from.
type Binding struct {
	Scope    store.Scope
	Budget   policy.BudgetRef
	Rates    []limiter.Rate
	Fairness limiter.Fairness
	Since    limiter.Instant // when it began to, by the store's clock: no window that the store granted of was open

	first limiter.Windows // of the budget in which it began to, in windows of these lengths
	until limiter.Instant // end of the last window drawn from, by the budget's clock
	ends  limiter.Instant // of the sentinel's window in which it did last
}

// Until returns when the last window ends that the limit drew from, by the budget's clock.
func (d *Binding) Until() limiter.Instant { return d.until }

// began returns when the store's window of that length began in which the limit began to draw. Windows of
// the budget that began before may have numbers that the store served.
func (d *Binding) began(of limiter.OpenWindow) limiter.Instant { return of.WindowAt(d.Since).Start() }

// Early returns until when nothing is drawn, because the store may have served the number of a window; 0 when
// it served none.
func (d *Binding) Early(w limiter.Windows) (until limiter.Instant) {
	for _, o := range w.Slice() {
		if began := d.began(o); o.Start() < began {
			until = max(until, began, o.End())
		}
	}
	return until
}

// Params returns what the budget hands on by.
func (d *Binding) Params(p limiter.Params) limiter.Params {
	return limiter.Params{Rates: d.Rates, Fairness: d.Fairness, Generation: p.Generation}
}

// asBefore reports whether both draw from the same budget in windows of the same lengths.
func (d *Binding) asBefore(last *Binding) bool {
	return d.Budget == last.Budget && slices.EqualFunc(d.Rates, last.Rates, func(a, b limiter.Rate) bool { return a.Window == b.Window })
}

// Owned leaves of the windows those whose units are the budget's and no others: they are as long as its
// windows, and began after the one in which the limit began to draw. The others get a number that no
// window has. It reports whether any is left.
func (d *Binding) Owned(w *limiter.Windows) (some bool) {
	if w.N != d.first.N {
		return false
	}
	for i := range w.Slice() {
		if o, first := &w.Open[i], d.first.Open[i]; o.Window != first.Window || o.Index <= first.Index || o.Start() < d.began(*o) {
			o.Index = NoWindow
		} else {
			some = true
		}
	}
	return some
}

// NoWindow is the number of no window of a budget.
const NoWindow = -1

// longest returns the length of the longest windows.
func (d *Binding) longest() limiter.Micros { return limiter.Params{Rates: d.Rates}.Longest().Window }

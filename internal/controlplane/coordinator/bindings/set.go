package bindings

import (
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Set has those of the limits that drew from budgets in a term. It is safe for concurrent use.
type Set struct {
	mu      sync.RWMutex
	byScope map[store.Scope]Binding
}

// NewSet returns a set of none.
func NewSet() *Set { return &Set{byScope: map[store.Scope]Binding{}} }

// Last returns which budget the limit drew from last, and false when it drew from none
// lately.
func (d *Set) Last(scope store.Scope) (Binding, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	last, ok := d.byScope[scope]
	return last, ok
}

// End enters that the store grants for the limit.
func (d *Set) End(scope store.Scope) {
	if _, drew := d.Last(scope); drew { // of most limits never
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.byScope, scope)
	}
}

// Note enters that a limit drew from those windows of a budget, and returns what is known
// then; the sentinel's window ends then.
func (d *Set) Note(from Binding, open limiter.Windows, ends limiter.Instant) Binding {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.byScope[from.Scope]
	from.first, from.ends, from.until = open, ends, last.until
	for _, w := range open.Slice() {
		from.until = max(from.until, w.End())
	}
	if ok && last.Budget == from.Budget {
		from.Since, from.ends = last.Since, max(last.ends, ends)
	}
	if ok && from.asBefore(&last) {
		from.first = last.first
	}
	d.byScope[from.Scope] = from
	return from
}

// Sweep forgets limits that drew in no window that is open or in the one before, of
// which a return may be under way.
func (d *Set) Sweep(now limiter.Instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for scope, from := range d.byScope {
		if now >= max(from.ends, from.until).Add(from.longest()) {
			delete(d.byScope, scope)
		}
	}
}

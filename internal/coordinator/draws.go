package coordinator

import (
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// draws are the limits that drew from budgets in this term.
type draws struct {
	mu      sync.RWMutex
	byScope map[store.Scope]drawn
}

func newDraws() *draws { return &draws{byScope: map[store.Scope]drawn{}} }

// last returns which budget the limit drew from last, and false when it drew from none
// lately.
func (d *draws) last(scope store.Scope) (drawn, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	last, ok := d.byScope[scope]
	return last, ok
}

// may reports whether a lease of the limit may have to ask a budget.
func (d *draws) may(l *published) bool {
	_, drew := d.last(l.scope)
	return l.budget != nil || drew
}

// end enters that the store grants for the limit.
func (d *draws) end(scope store.Scope) {
	if _, drew := d.last(scope); drew { // of most limits never
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.byScope, scope)
	}
}

// note enters that a limit drew from that window of a budget, and returns what is known
// then; the mark's window ends then.
func (d *draws) note(from drawn, open limiter.OpenWindow, ends limiter.Instant) drawn {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.byScope[from.scope]
	from.first, from.ends, from.until = open.Index, ends, max(open.End(), last.until)
	if ok && last.budget == from.budget {
		from.first, from.since, from.ends = last.first, last.since, max(last.ends, ends)
	}
	d.byScope[from.scope] = from
	return from
}

// sweep forgets limits that drew in no window that is open or in the one before, of
// which a return may be under way.
func (d *draws) sweep(now limiter.Instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for scope, from := range d.byScope {
		if now >= max(from.ends, from.until).Add(from.rate.Window) {
			delete(d.byScope, scope)
		}
	}
}

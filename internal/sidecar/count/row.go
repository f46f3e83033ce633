package count

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A window is one store window: which windows they are of, its number, and since when its
// store serves. Two stores may have windows of the same number, which are not the same.
type window struct {
	of    limiter.Rate // without amounts
	index int64
	since limiter.Instant
}

func windowOf(w limiter.OpenWindow, since limiter.Instant) window {
	return window{of: limiter.Rate{Window: w.Window, Offset: w.Offset, Monthly: w.Monthly}, index: w.Index, since: since}
}

// A tuple is the windows, one a rate, that were open at the same time.
type tuple struct {
	n    int
	open [limiter.MaxRates]window
}

func tupleOf(w *limiter.Windows, since limiter.Instant) tuple {
	t := tuple{n: w.N}
	for i := range w.N {
		t.open[i] = windowOf(w.Open[i], since)
	}
	return t
}

// since returns since when the store of the windows serves.
func (t tuple) since() limiter.Instant { return t.open[0].since }

func tupleOfWindow(w window) tuple { return tuple{n: 1, open: [limiter.MaxRates]window{w}} }

// shape returns t without its indices.
func (t tuple) shape() tuple {
	for i := range t.open {
		t.open[i].index = 0
	}
	return t
}

// before reports whether t was open before u, a tuple of the same shape.
func (t tuple) before(u tuple) bool {
	for i := range t.n {
		if t.open[i].index < u.open[i].index {
			return true
		}
	}
	return false
}

// shortest returns the length of the window that ends a tuple.
func (t tuple) shortest() time.Duration {
	shortest := limiter.MaxWindow
	for _, w := range t.open[:t.n] {
		shortest = min(shortest, w.of.Window)
	}
	return time.Duration(shortest) * time.Microsecond
}

// slack is how long after the estimated end of a tuple an event may still come. The
// estimate stops short of the end by up to 200 ppm of the window, and a request that
// was decided may wait for the processor before it is counted.
func (t tuple) slack() time.Duration { return time.Second + t.shortest()/5000 }

// A tally is what one key was admitted and refused.
type tally struct{ admitted, refused int64 }

// offered returns what the key was asked for.
func (t *tally) offered() int64 { return t.admitted + t.refused }

// A row counts what was let through while the windows of its tuple were open.
type row struct {
	tuple tuple
	seen  atomic.Pointer[limiter.Windows] // that belong here, as an event had them last

	opened  time.Time
	lasts   atomic.Int64 // nanoseconds from opened to the end, estimated
	tracked atomic.Int64 // keys counted apart
	handed  bool         // to the sketch; guarded by the limit's lock

	mu         sync.Mutex
	limits     [limiter.MaxRates]int64
	total      tally
	local      int64
	localShare int64
	keys       tallies
	taken      int64 // bytes of memory for them
	leaders    leaders
	absorbed   bool   // by the sketch
	overflow   bool   // keys beyond the bound were not counted apart
	uncounted  int64  // admitted of those keys
	holders    int64  // the most that were known to enforce the limit
	changes    uint64 // events counted so far
	sent       sent
	reported   int64 // units, admitted and refused, as they were sent
	closed     bool  // it is forgotten, and counts nothing more
}

// sent is what a session was last sent of a row.
type sent struct {
	session uint64
	changes uint64
	final   bool
}

// newRow returns the row of an event that happened at now.
func (l *Limit) newRow(t tuple, e *Event, now time.Time) *row {
	lasts := t.shortest()
	if e.EndsIn > 0 {
		lasts = min(lasts, e.EndsIn)
	}
	r := &row{tuple: t, opened: now}
	r.lasts.Store(int64(lasts + l.settings.Load().Lag))
	for i, w := range e.Windows.Open[:t.n] {
		r.limits[i] = w.Limit
		if own, ok := l.ownLimit(w); ok && e.overridden {
			r.limits[i] = own
		}
	}
	return r
}

// ownLimit returns the limit of those keys that have none of their own in the
// windows that w is one of.
func (l *Limit) ownLimit(w limiter.OpenWindow) (limit int64, ok bool) {
	for _, r := range l.settings.Load().Rates {
		if windowOf(r.WindowAt(0), 0).of == windowOf(w, 0).of {
			return r.Limit, true
		}
	}
	return 0, false
}

// hasten ends the row no later than that long after now.
func (r *row) hasten(now time.Time, lag time.Duration) {
	r.lasts.Store(min(r.lasts.Load(), int64(now.Sub(r.opened)+lag)))
}

// close makes the row count nothing more, and returns how many units it counted.
func (r *row) close(memory *usage) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		memory.give(r.taken)
	}
	r.closed = true
	return r.total.offered()
}

// count counts the event, and returns false when the row is forgotten.
func (r *row) count(e *Event, s *Settings, holders int64, memory *usage) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.changes++
	r.holders = max(r.holders, holders)
	r.total.add(e)
	// While an edit spreads, windows of the old and the new limit are seen; what
	// was admitted is within the larger one.
	for i := 0; i < r.tuple.n && !e.overridden; i++ {
		r.limits[i] = max(r.limits[i], e.Windows.Open[i].Limit)
	}
	if e.Local {
		r.localShare = max(r.localShare, e.LocalShare)
		if e.Outcome.admits() {
			r.local += e.Cost
		}
	}
	if s.Keyed {
		r.countKey(e, s.MaxKeys, memory)
	}
	return true
}

func (r *row) countKey(e *Event, maxKeys int, memory *usage) {
	if key := r.key(e, maxKeys, memory); key != nil {
		key.add(e)
		r.leaders.note(e.Value, key)
		return
	}
	r.overflow = true
	r.uncounted += e.admitted()
}

// key returns the tally of the event's key, nil when it is not counted apart. Keys
// with limits of their own always are.
func (r *row) key(e *Event, maxKeys int, memory *usage) *tally {
	if key := r.keys.get(e.Value); key != nil {
		return key
	}
	if r.keys.n >= maxKeys && !e.overridden {
		return nil
	}
	n, ok := memory.take(e.Value)
	if !ok && !e.overridden {
		return nil
	}
	r.taken += n
	r.tracked.Add(1)
	return r.keys.add(e.lasting())
}

func (t *tally) add(e *Event) {
	t.admitted += e.admitted()
	t.refused += e.refused()
}

// ended returns how long ago the row ended, negative while it has not.
func (r *row) ended(now time.Time) time.Duration {
	return now.Sub(r.opened) - time.Duration(r.lasts.Load())
}

// over reports whether the row ended so long ago that no more events are to be
// expected.
func (r *row) over(now time.Time) bool { return r.ended(now) >= r.tuple.slack() }

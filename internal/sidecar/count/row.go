package count

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A window is one store window.
type window struct {
	length limiter.Micros
	index  int64
}

// A tuple is the windows, one a rate, that were open at the same time.
type tuple struct {
	n    int
	open [limiter.MaxRates]window
}

func tupleOf(w *limiter.Windows) tuple {
	t := tuple{n: w.N}
	for i := range w.N {
		t.open[i] = window{length: w.Open[i].Window, index: w.Open[i].Index}
	}
	return t
}

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
		shortest = min(shortest, w.length)
	}
	return time.Duration(shortest) * time.Microsecond
}

// slack is how long after the estimated end of a tuple an event may still come:
// the estimate stops short of the end by up to 200 ppm of the window, and a
// request that was decided may wait for the processor before it is counted.
func (t tuple) slack() time.Duration { return time.Second + t.shortest()/5000 }

// A tally is what one key was admitted and refused.
type tally struct{ admitted, refused int64 }

// A row counts what was let through while the windows of its tuple were open.
type row struct {
	tuple tuple

	end     time.Time    // estimated, on this process's clock
	tracked atomic.Int64 // keys counted apart

	mu         sync.Mutex
	limits     [limiter.MaxRates]int64
	total      tally
	local      int64
	localShare int64
	keys       map[string]*tally
	overflow   bool   // keys beyond the bound were not counted apart
	uncounted  int64  // admitted of those keys
	holders    int64  // the most that were known to enforce the limit
	changes    uint64 // events counted so far
	sent       sent
}

// sent is what a session was last told of a row.
type sent struct {
	session uint64
	changes uint64
	final   bool
}

func newRow(t tuple, now time.Time, endsIn time.Duration) *row {
	lasts := t.shortest()
	if endsIn > 0 {
		lasts = min(lasts, endsIn)
	}
	return &row{tuple: t, end: now.Add(lasts)}
}

func (r *row) count(e Event, maxKeys int, keyed bool, holders int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.holders = max(r.holders, holders)
	r.total.add(e)
	// While an edit spreads, windows of the old and the new limit are seen; what
	// was admitted is within the larger one.
	for i := range r.tuple.n {
		r.limits[i] = max(r.limits[i], e.Windows.Open[i].Limit)
	}
	if e.Local {
		r.localShare = max(r.localShare, e.LocalShare)
		if e.Outcome.admits() {
			r.local += e.Cost
		}
	}
	if keyed {
		r.countKey(e, maxKeys)
	}
}

func (r *row) countKey(e Event, maxKeys int) {
	if key := r.key(e.Value, maxKeys); key != nil {
		key.add(e)
		return
	}
	r.overflow = true
	if e.Outcome.admits() {
		r.uncounted += e.Cost
	}
}

func (r *row) key(value string, maxKeys int) *tally {
	if key, ok := r.keys[value]; ok {
		return key
	}
	if len(r.keys) >= maxKeys {
		return nil
	}
	if r.keys == nil {
		r.keys = make(map[string]*tally)
	}
	key := new(tally)
	// A copy, or the map would keep the buffer of a whole request's header.
	r.keys[strings.Clone(value)] = key
	r.tracked.Add(1)
	return key
}

func (t *tally) add(e Event) {
	if e.Outcome.admits() {
		t.admitted += e.Cost
	} else {
		t.refused += e.Cost
	}
}

// over reports whether the row's windows ended so long ago that no more events
// are to be expected.
func (r *row) over(now time.Time) bool { return now.Sub(r.end) >= r.tuple.slack() }

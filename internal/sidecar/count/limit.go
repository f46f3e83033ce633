package count

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Settings are what the counts of a limit depend on.
type Settings struct {
	Generation int64
	Keyed      bool
	MaxKeys    int   // most values counted apart in one tuple of windows
	Holders    int64 // processes that enforce the limit, at least 1
}

// An Outcome is what became of a request under one limit.
type Outcome uint8

// The outcomes.
const (
	Admitted      Outcome = iota
	Refused               // the limit is reached
	ShadowRefused         // refused, and let through because the limit is only watched
	FailedOpen            // admitted because the store is away and the policy says so
	FailedClosed          // refused because the store is away
	KeyMissing            // the request lacks a part of the key: a request, but no demand
	outcomes
)

var outcomeNames = [outcomes]string{
	Admitted: "admitted", Refused: "refused", ShadowRefused: "shadow_refused",
	FailedOpen: "failed_open", FailedClosed: "failed_closed",
	KeyMissing: "key_missing",
}

// String returns the outcome's name in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes lists all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Admitted, Refused, ShadowRefused, FailedOpen, FailedClosed, KeyMissing}
}

func (o Outcome) admits() bool { return o == Admitted || o == FailedOpen }

// An Event is one request that a limit judged.
type Event struct {
	Outcome Outcome
	Value   string // of the key; empty for the limit's single counter
	Cost    int64
	// Windows are those the decision is charged to, nil when they are not known.
	// Only lengths, limits and indices are read.
	Windows *limiter.Windows
	EndsIn  time.Duration // until the first of them ends, 0 when unknown
	// Local says that the decision was made without the store; LocalShare is the
	// most one key may then be admitted, 0 when there is no such bound.
	Local      bool
	LocalShare int64
}

// A Limit counts what one limit let through. All methods may be called
// concurrently.
type Limit struct {
	name Name
	hash func(string) string

	generation atomic.Int64
	holders    atomic.Int64
	maxKeys    atomic.Int64
	keyed      atomic.Bool
	finished   atomic.Bool // nothing is counted any more

	requests          [outcomes]atomic.Uint64
	admitted, refused atomic.Int64 // in units of cost
	unplaced          atomic.Int64 // of admitted: in windows that are not known

	current atomic.Pointer[row] // where the last event was counted

	mu      sync.Mutex
	rows    []*row // in the order they were opened
	byTuple map[tuple]*row
	sums    map[window]*sum
	summed  []window  // the windows of sums, in the order they were opened
	retired time.Time // when the limit was removed; zero while it is enforced
	// forgotten is, by shape, the newest tuple whose counts are gone: no question
	// about it or an older one has an answer.
	forgotten map[tuple]tuple
}

func newLimit(name Name, hash func(string) string) *Limit {
	return &Limit{
		name: name, hash: hash,
		byTuple:   make(map[tuple]*row),
		sums:      make(map[window]*sum),
		forgotten: make(map[tuple]tuple),
	}
}

func (l *Limit) configure(s Settings) {
	l.generation.Store(s.Generation)
	l.holders.Store(max(1, s.Holders))
	l.maxKeys.Store(int64(max(1, s.MaxKeys)))
	l.keyed.Store(s.Keyed)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = time.Time{}
}

func (l *Limit) retire(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired.IsZero() {
		l.retired = now
	}
}

// final reports whether the counts of r stay as they are, as far as is known.
func (l *Limit) final(r *row, now time.Time) bool { return l.finished.Load() || r.over(now) }

// Requests returns how many requests had the outcome since the process started.
func (l *Limit) Requests(o Outcome) uint64 { return l.requests[o].Load() }

// Count counts e at the instant now. An event without windows is part of the
// totals only.
func (l *Limit) Count(now time.Time, e Event) {
	l.requests[e.Outcome].Add(1)
	switch {
	case e.Outcome == KeyMissing:
		return
	case e.Outcome.admits():
		l.admitted.Add(e.Cost)
	default:
		l.refused.Add(e.Cost)
	}
	if e.Windows == nil || e.Windows.N == 0 {
		if e.Outcome.admits() {
			l.unplaced.Add(e.Cost)
		}
		return
	}
	r := l.rowOf(e.Windows, now, e.EndsIn)
	keyed := l.keyed.Load()
	r.count(e, int(l.maxKeys.Load()), keyed, l.holders.Load())
	if keyed && r.tuple.n > 1 {
		l.addToSums(r.tuple, e, now)
	}
}

// rowOf returns the row of the windows and opens it when there is none.
func (l *Limit) rowOf(w *limiter.Windows, now time.Time, endsIn time.Duration) *row {
	t := tupleOf(w)
	if r := l.current.Load(); r != nil && r.tuple == t {
		return r
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.byTuple[t]
	if !ok {
		l.prune(now) // whether or not anybody takes reports
		r = newRow(t, now, endsIn)
		l.byTuple[t] = r
		l.rows = append(l.rows, r)
	}
	l.current.Store(r)
	return r
}

// Bounds of what is kept for one limit. Those of keys are over all tuples, in
// multiples of Settings.MaxKeys.
const (
	maxRows  = 1024             // tuples of windows
	keptKeys = 2                // beyond them a row goes when everything was told
	mostKeys = 4                // beyond them it goes at once
	telling  = 15 * time.Second // after its end, for the last report and a question about it
)

// sweep forgets what ended Keep ago, and the oldest beyond the bounds. It reports
// whether the limit itself was removed Keep ago.
func (l *Limit) sweep(now time.Time) (gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prune(now)
	return !l.retired.IsZero() && now.Sub(l.retired) > Keep
}

// prune forgets rows and sums; mu is held.
func (l *Limit) prune(now time.Time) {
	most := int(l.maxKeys.Load())
	keys, newest := 0, len(l.rows)-1
	rows := make([]*row, 0, len(l.rows)+1)
	for i, r := range slices.Backward(l.rows) {
		keys += int(r.tracked.Load())
		crowded := i < newest && (len(rows) >= maxRows || isCrowded(keys, most, now.Sub(r.end)))
		if l.final(r, now) && (crowded || now.Sub(r.end) > Keep) {
			delete(l.byTuple, r.tuple)
			l.current.CompareAndSwap(r, nil)
			l.forget(r.tuple)
		} else {
			rows = append(rows, r)
		}
	}
	slices.Reverse(rows)
	l.rows = rows

	keys = 0
	summed := make([]window, 0, len(l.summed)+1)
	for _, w := range slices.Backward(l.summed) {
		s := l.sums[w]
		keys += len(s.keys)
		since := now.Sub(s.end)
		if since > Keep || since > 0 && isCrowded(keys, most, since) {
			delete(l.sums, w)
			l.forget(tupleOfWindow(w))
		} else {
			summed = append(summed, w)
		}
	}
	slices.Reverse(summed)
	l.summed = summed
}

// isCrowded reports whether what ended so long ago has to give way when so many
// keys are kept.
func isCrowded(keys, maxKeys int, since time.Duration) bool {
	return keys > mostKeys*maxKeys || keys > keptKeys*maxKeys && since > telling
}

func (l *Limit) forget(t tuple) {
	shape := t.shape()
	if newest, ok := l.forgotten[shape]; !ok || newest.before(t) {
		l.forgotten[shape] = t
	}
}

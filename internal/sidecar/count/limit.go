package count

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Settings are what the counts of a limit depend on. They are not changed.
type Settings struct {
	Generation int64
	Rates      []limiter.Rate
	Keyed      bool
	MaxKeys    int   // most values counted apart in one tuple of windows
	Holders    int64 // processes that enforce the limit, at least 1
	Clusters   int64 // that share the limit of a key, 0 for this one alone
	// Overrides are the values that have limits of their own. They are counted
	// apart whatever MaxKeys says, and named in every row.
	Overrides map[string]limiter.Params
	// Lag is how long after the end of a window a request may still be let through
	// and counted in it.
	Lag time.Duration
}

// An Outcome is what became of a request under one limit.
type Outcome uint8

// The outcomes.
const (
	Admitted      Outcome = iota
	Refused               // the limit is reached
	ShadowRefused         // refused, and let through because the limit is only watched
	FailedOpen            // admitted because the store is away and the policy says so
	FailedClosed          // refused because the store does not answer, and no share is open
	KeyMissing            // the request lacks a part of the key: a request, but no demand
	CostTooLarge          // the request costs more than the limit ever admits: no demand either
	outcomes
)

var outcomeNames = [outcomes]string{
	Admitted: "admitted", Refused: "refused", ShadowRefused: "shadow_refused",
	FailedOpen: "failed_open", FailedClosed: "failed_closed",
	KeyMissing: "key_missing", CostTooLarge: "cost_too_large",
}

// String returns the outcome's name in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes lists all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Admitted, Refused, ShadowRefused, FailedOpen, FailedClosed, KeyMissing, CostTooLarge}
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
	Since   limiter.Instant // since when their store serves; see policy.Policy.Since
	EndsIn  time.Duration   // until the first of them ends, 0 when unknown
	// Paid is what was charged to the windows besides, for requests that had cost more
	// than was known when they were let through.
	Paid int64

	// Lasting says that the value is a text of its own: of one that is a part of a request a copy
	// is kept.
	Lasting bool

	// overridden says that the value has limits of its own.
	overridden bool
	// Local says that the decision was made without the store; LocalShare is the
	// most one key may then be admitted, 0 when there is no such bound.
	Local      bool
	LocalShare int64
}

// admitted returns what the event adds to what was admitted.
func (e *Event) admitted() int64 {
	if e.Outcome.admits() {
		return e.Cost + e.Paid
	}
	return e.Paid
}

// refused returns what the event adds to what was refused.
func (e *Event) refused() int64 {
	if e.Outcome.admits() {
		return 0
	}
	return e.Cost
}

// lasting returns the value as it is kept. A part would keep the buffer of a whole request's header.
func (e *Event) lasting() string {
	if e.Lasting {
		return e.Value
	}
	return strings.Clone(e.Value)
}

// A Limit counts what one limit let through. All methods may be called
// concurrently.
type Limit struct {
	name   Name
	hash   func(string) string
	memory *usage

	settings atomic.Pointer[Settings]
	holders  atomic.Int64
	finished atomic.Bool // nothing is counted any more

	requests          [outcomes]atomic.Uint64
	admitted, refused atomic.Int64 // in units of cost
	unplaced          atomic.Int64 // of admitted: in no row

	current atomic.Pointer[row] // where the last event was counted

	hottest sketch // of the rows that are over

	// A goroutine that holds several locks took that of the sketch first, then this, then that of
	// a row, then that of the sums.
	mu      sync.Mutex
	rows    []*row // in the order they were opened
	byTuple map[tuple]*row
	begun   time.Time // when the first row was opened
	gone    int64     // units, admitted and refused, of the rows that are forgotten
	retired time.Time // when the limit was removed; zero while it is enforced
	// forgotten is, by shape, the newest tuple whose counts are gone: no question
	// about it or an older one has an answer.
	forgotten map[tuple]tuple

	summing sync.Mutex
	sums    map[window]*sum
	summed  []window // the windows of sums, in the order they were opened
}

func newLimit(name Name, hash func(string) string, memory *usage) *Limit {
	return &Limit{
		name: name, hash: hash, memory: memory,
		byTuple:   make(map[tuple]*row),
		sums:      make(map[window]*sum),
		forgotten: make(map[tuple]tuple),
	}
}

func (l *Limit) configure(s Settings) {
	s.MaxKeys = max(1, s.MaxKeys)
	l.settings.Store(&s)
	l.holders.Store(max(1, s.Holders))
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
	if e.Outcome != KeyMissing && e.Outcome != CostTooLarge {
		l.enter(now, &e)
	}
}

// Pay counts what was paid along with a decision that does not stand: nothing else
// of the event.
func (l *Limit) Pay(now time.Time, e Event) {
	e.Outcome, e.Cost = Refused, 0
	l.enter(now, &e)
}

// enter enters units of the event.
func (l *Limit) enter(now time.Time, e *Event) {
	l.admitted.Add(e.admitted())
	l.refused.Add(e.refused())
	if e.Windows == nil || e.Windows.N == 0 {
		l.unplaced.Add(e.admitted())
		return
	}
	settings := l.settings.Load()
	if len(settings.Overrides) > 0 {
		_, e.overridden = settings.Overrides[e.Value]
	}
	r := l.rowOf(e, now)
	if !r.count(e, settings, l.holders.Load(), l.memory) {
		l.unplaced.Add(e.admitted())
	}
	if settings.Keyed && r.tuple.n > 1 {
		l.addToSums(r.tuple, e, now)
	}
}

// rowOf returns the row of the event's windows and opens it when there is none.
// Decisions mostly share their windows, so most are found by where they are.
func (l *Limit) rowOf(e *Event, now time.Time) *row {
	r := l.current.Load()
	if r != nil && r.seen.Load() == e.Windows && r.tuple.since() == e.Since {
		return r
	}
	t := tupleOf(e.Windows, e.Since)
	if r == nil || r.tuple != t {
		r = l.open(t, e, now)
	}
	r.seen.Store(e.Windows)
	return r
}

// open makes the row of t the current one.
func (l *Limit) open(t tuple, e *Event, now time.Time) *row {
	l.mu.Lock()
	r, ok := l.byTuple[t]
	var over []*row
	if !ok {
		over = l.prune(now) // whether or not anybody takes reports
		l.hasten(t, now)
		r = l.newRow(t, e, now)
		if l.begun.IsZero() {
			l.begun = now
		}
		l.byTuple[t] = r
		l.rows = append(l.rows, r)
	}
	l.current.Store(r)
	l.mu.Unlock()
	l.hottest.absorb(over)
	return r
}

// hasten ends the rows that t, which is open, shows to be over; mu is held. Their known
// ends are estimates, and for some algorithms poor ones.
func (l *Limit) hasten(t tuple, now time.Time) {
	shape, lag := t.shape(), l.settings.Load().Lag
	for _, r := range l.rows {
		if r.tuple.shape() == shape && r.tuple.before(t) {
			r.hasten(now, lag)
		}
	}
}

// Bounds of the rows and keys that are kept for one limit. Those of keys are over all
// tuples, in multiples of Settings.MaxKeys. Where memory is short the first one holds for any
// number of keys.
const (
	maxRows  = 1024             // tuples of windows
	keptKeys = 2                // beyond them a row goes when everything was sent
	mostKeys = 4                // beyond them it goes at once
	asking   = 15 * time.Second // after its end, for the last report and a question about it
)

// sweep forgets what ended Keep ago, and the oldest beyond the bounds. It reports
// whether the limit itself was removed Keep ago.
func (l *Limit) sweep(now time.Time) (gone bool) {
	l.mu.Lock()
	over := l.prune(now)
	gone = !l.retired.IsZero() && now.Sub(l.retired) > Keep
	l.mu.Unlock()
	l.hottest.absorb(over)
	return gone
}

// prune forgets rows and sums, and returns the rows that were found to be over; mu
// is held.
func (l *Limit) prune(now time.Time) (over []*row) {
	most := l.settings.Load().MaxKeys
	keys, newest := 0, len(l.rows)-1
	rows := make([]*row, 0, len(l.rows)+1)
	for i, r := range slices.Backward(l.rows) {
		keys += int(r.tracked.Load())
		final, ended := l.final(r, now), r.ended(now)
		if final && !r.handed {
			r.handed = true
			over = append(over, r)
		}
		crowded := i < newest && (len(rows) >= maxRows || l.isCrowded(keys, most, ended))
		if final && (crowded || ended > Keep) {
			delete(l.byTuple, r.tuple)
			l.current.CompareAndSwap(r, nil)
			l.forget(r.tuple)
			l.gone += r.close(l.memory)
		} else {
			rows = append(rows, r)
		}
	}
	slices.Reverse(rows)
	l.rows = rows
	l.pruneSums(now, most)
	return over
}

// pruneSums forgets sums; mu is held.
func (l *Limit) pruneSums(now time.Time, most int) {
	l.summing.Lock()
	defer l.summing.Unlock()
	keys := 0
	summed := make([]window, 0, len(l.summed)+1)
	for _, w := range slices.Backward(l.summed) {
		s := l.sums[w]
		keys += s.keys.n
		since := now.Sub(s.end)
		if since > Keep || since > 0 && l.isCrowded(keys, most, since) {
			l.forgetSum(w)
			l.forget(tupleOfWindow(w))
		} else {
			summed = append(summed, w)
		}
	}
	slices.Reverse(summed)
	l.summed = summed
}

// isCrowded reports whether a row that has been over for since has to give way when the
// given number of keys is kept.
func (l *Limit) isCrowded(keys, maxKeys int, since time.Duration) bool {
	return keys > mostKeys*maxKeys || (keys > keptKeys*maxKeys || l.memory.short.Load()) && since > asking
}

func (l *Limit) forget(t tuple) {
	shape := t.shape()
	if newest, ok := l.forgotten[shape]; !ok || newest.before(t) {
		l.forgotten[shape] = t
	}
}

package audit

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds of what one Limit remembers. Keys are the bulk, so limits with a key
// remember fewer windows, but never fewer than it takes to measure the first of
// them: until every holder has reported twice and answered.
const (
	retainedTuples      = 32
	retainedKeyedTuples = 16
	measureReports      = 8 // intervals
	maxLosses           = 256
	maxWindows          = 1024
)

// slackReports is how many intervals may pass until what a holder does is known
// here: one until it reports, and one for delays on the way.
const slackReports = 2

// Config is what a limit promises in one generation of its policy.
type Config struct {
	Generation int64
	// Since is when the store began to serve the limit, on its own clock; 0 for the store
	// that served first. Every move to another store begins a period with windows of its
	// own, also under the same generation.
	Since   limiter.Instant
	Promise Promise // to every counter
	Keyed   bool
	// Overrides are what single keys, by their hash, are promised instead. Holders
	// name those keys in every row.
	Overrides map[string]Promise
	// Carry is how many units a holder may carry into a window.
	Carry int64
	// Unsettled says that requests are let through before it is known what they cost,
	// so that nothing bounds what a window admits.
	Unsettled bool
	// Resume says that the store goes on with the counts that are left when it loses its
	// memory, so that each loss may admit once more what is promised.
	Resume bool
	// Reset is when a counter was set back last, on the store's clock; 0 for never.
	// Nothing bounds what the windows that were open then admit.
	Reset limiter.Instant
}

// rates returns those of every counter, each window once.
func (c *Config) rates() []limiter.Rate {
	var all []limiter.Rate
	for p := range c.promises() {
		for _, r := range p.Rates {
			if !slices.ContainsFunc(all, func(other limiter.Rate) bool { return windowsOf(other) == windowsOf(r) }) {
				all = append(all, r)
			}
		}
	}
	return all
}

// promises yields that to every counter and those to single ones.
func (c *Config) promises() iter.Seq[Promise] {
	return func(yield func(Promise) bool) {
		if !yield(c.Promise) {
			return
		}
		for _, hash := range slices.Sorted(maps.Keys(c.Overrides)) {
			if !yield(c.Overrides[hash]) {
				return
			}
		}
	}
}

// A Promise is what one counter keeps to.
type Promise struct {
	Rates []limiter.Rate
	// Most is what a window of each rate may admit: the limit, and for algorithms
	// without windows the burst on top. Empty stands for the limits.
	Most []int64
}

// of returns the ceiling in windows of a rate; zero when there is no such rate.
func (p Promise) of(windows limiter.Rate) ceiling {
	for i, r := range p.Rates {
		switch {
		case windowsOf(r) != windows:
		case len(p.Most) > 0:
			return ceiling{most: p.Most[i], limit: r.Limit}
		default:
			return ceiling{most: r.Limit, limit: r.Limit}
		}
	}
	return ceiling{}
}

// A Limit audits one limit of one policy. It is not safe for concurrent use.
type Limit struct {
	interval   time.Duration
	generation int64
	promised   Config
	keyed      bool
	before     legacy

	// known is when the audit began to know every holder, and since that or when the
	// generation began. Of windows that began before since it tells only what they
	// admitted at least.
	known, since time.Time
	// changed is when a holder last began to enforce another generation; windows
	// that began before mix promises.
	changed time.Time

	members map[Holder]*member
	// losses holds when holders vanished. A window that may have begun before is
	// unknown even when it is first heard of later.
	losses map[Holder]time.Time

	// accounts are those of members and of holders that vanished.
	accounts map[Holder]*account
	running  map[string]Holder // the process that joined last, by the pod's UID

	// unplaced is when it was last found that something was admitted that is in no row.
	// A window that may have begun before is unknown.
	unplaced time.Time

	rows    map[tuple]map[Holder]Row
	windows map[windowID]*window
	periods []*period // from the first that was heard of to the last
	queries uint64

	unbroken []Unbroken // what is known of the memory of the store

	figures     map[limiter.Rate]*figure // by what windowsOf tells
	worstUnused int32
	traffic     bool
	meter       meter
}

// A legacy is the most that generations promise which holders may still enforce.
type legacy struct {
	most      map[limiter.Rate]int64 // by what windowsOf tells
	carry     int64
	unsettled bool
	resume    bool
}

// A member is a holder that enforces the limit.
type member struct {
	rounds     int       // of reports that arrived since it joined
	round      time.Time // when the last of them began,
	before     time.Time // and the one before, zero for none
	caught     bool      // up: nothing waits of what it counted before it joined
	waiting    bool      // more waits than its last report had room for
	reported   bool      // the limit was spoken of; the fields below are as it was last
	generation int64
	totals     Totals
	activeKeys int64
	hottest    []KeyCount
	// ended is when the newest windows that are over for the holder ended. Once it
	// has left, that proves nothing: they were over because it stopped.
	ended   limiter.Instant
	endedOf limiter.Instant // their period
}

// New returns the audit of a limit whose holders report every interval. From
// since on it is told of every holder; windows that may have begun before are not
// measured, but show what they admitted at least.
func New(interval time.Duration, c Config, since time.Time) *Limit {
	l := &Limit{
		interval: interval,
		known:    since,
		since:    since,
		members:  map[Holder]*member{},
		losses:   map[Holder]time.Time{},
		accounts: map[Holder]*account{},
		running:  map[string]Holder{},
		rows:     map[tuple]map[Holder]Row{},
		windows:  map[windowID]*window{},
	}
	l.adopt(c, since)
	return l
}

// Reconfigure begins another generation: all figures but the flow start anew, from
// windows that begin later. What an earlier one admits is still held against its
// bound, and until every holder enforces the generation a window may hold the
// larger of both limits. A lower
// or equal generation changes nothing.
func (l *Limit) Reconfigure(c Config, now time.Time) {
	if c.Generation >= l.generation && c.Since != l.promised.Since {
		l.move(c.Since)
	}
	if c.Generation <= l.generation {
		l.promised.Reset = max(l.promised.Reset, c.Reset) // which comes without another generation
		return
	}
	if c.Keyed != l.keyed {
		l.forget()
	}
	l.remember(now)
	l.adopt(c, now)
}

// remember keeps what the generation that ends promises for the windows that mix it
// with the next one.
func (l *Limit) remember(now time.Time) {
	recent := now.Sub(l.changed) <= l.longest()+(slackReports+silentRounds)*l.interval
	if l.before.most == nil || !recent && !l.lagging() {
		l.before = legacy{most: map[limiter.Rate]int64{}}
	}
	for p := range l.promised.promises() {
		for _, r := range p.Rates {
			l.before.most[windowsOf(r)] = max(l.before.most[windowsOf(r)], p.of(windowsOf(r)).most)
		}
	}
	l.before.carry = max(l.before.carry, l.promised.Carry)
	l.before.unsettled = l.before.unsettled || l.promised.Unsettled
	l.before.resume = l.before.resume || l.promised.Resume
}

// mixes reports whether holders may have worked by different generations in w.
func (l *Limit) mixes(w *window) bool { return !w.began.After(l.changed) || l.lagging() }

func (l *Limit) adopt(c Config, now time.Time) {
	l.generation, l.promised, l.keyed, l.changed = c.Generation, c, c.Keyed, now
	if l.current() == nil {
		l.begin(c.Since)
	}
	for _, p := range l.periods {
		p.adopted = p.reached
	}
	l.since = later(l.since, now)
	l.worstUnused = 0
	l.figures = make(map[limiter.Rate]*figure, len(l.promised.Promise.Rates))
	for _, r := range l.promised.rates() {
		l.figures[windowsOf(r)] = &figure{}
	}
	l.meter.span = min(max(shortestSpan, l.longest()), longestSpan)
}

// shortest returns the length of the shortest window.
func (l *Limit) shortest() time.Duration {
	shortest := limiter.MaxWindow
	for _, r := range l.promised.rates() {
		shortest = min(shortest, r.Window)
	}
	return duration(shortest)
}

// longest returns the length of the longest window.
func (l *Limit) longest() time.Duration {
	var longest time.Duration
	for _, r := range l.promised.rates() {
		longest = max(longest, duration(r.Window))
	}
	return longest
}

// Join adds a holder: from now on it has to account for windows. One that was
// lost and comes back may still account for those it left unknown.
func (l *Limit) Join(h Holder, now time.Time) {
	if l.members[h] != nil {
		return
	}
	l.succeed(h, now)
	l.members[h] = &member{}
	delete(l.losses, h)
	for _, w := range l.windows {
		w.rejoin(h)
	}
	l.review()
}

// Leave removes a holder that stopped in good order: what it reported is all
// there is. Only the keys of rows that are not final are unknown.
func (l *Limit) Leave(h Holder) {
	if l.members[h] == nil {
		return
	}
	delete(l.members, h)
	delete(l.accounts, h)
	if l.running[h.PodUID] == h {
		delete(l.running, h.PodUID)
	}
	for _, w := range l.windows {
		w.leave(h, !l.keyed || w.openRows(h) == 0)
	}
}

// Lose removes a holder that vanished: what it had not accounted for is unknown.
func (l *Limit) Lose(h Holder, now time.Time) {
	m := l.members[h]
	if m == nil {
		return
	}
	delete(l.members, h)
	for _, w := range l.windows {
		w.leave(h, w.accounted(h, m))
	}
	l.vanish(h, now)
	l.pruneLosses(now)
	if len(l.losses) >= maxLosses {
		h = Holder{} // one that never comes back stands for many
	}
	l.losses[h] = now
}

func (l *Limit) pruneLosses(now time.Time) {
	for h, at := range l.losses {
		if now.Sub(at) > l.longest()+slackReports*l.interval {
			delete(l.losses, h)
		}
	}
}

// Pass enters a report that says nothing of the limit: the holder has nothing to
// account for.
func (l *Limit) Pass(h Holder, now time.Time) {
	m := l.members[h]
	if m == nil {
		return
	}
	m.hear(now, l.interval)
	m.caught = true
	if a := l.accounts[h]; a != nil && m.rounds >= silentRounds {
		a.lost = time.Time{}
	}
}

// hear counts rounds of reports: a holder with much to say sends several at once.
func (m *member) hear(now time.Time, interval time.Duration) {
	if m.rounds == 0 || now.Sub(m.round) >= interval/2 {
		m.rounds++
		m.before, m.round = m.round, now
	}
}

// Report enters what a holder counted. Reports of others than members are
// ignored.
func (l *Limit) Report(h Holder, r Report, now time.Time) {
	m := l.members[h]
	if m == nil {
		return
	}
	if m.reported {
		l.meter.add(r.Totals.since(m.totals), now)
		if r.Generation > m.generation {
			l.changed = now
		}
	}
	if m.waiting = r.Waiting; !r.Waiting {
		m.hear(now, l.interval)
	}
	m.reported, m.generation, m.totals, m.activeKeys, m.hottest = true, r.Generation, r.Totals, r.ActiveKeys, r.Hottest
	for _, row := range r.Rows {
		l.count(h, row, now, m.rounds <= 1 || !m.caught)
		if row.Final {
			m.end(tupleOf(&row))
		}
	}
	m.caught = m.caught || !r.Waiting
	l.compare(h, &r, now)
	l.review()
	l.drop()
}

// end notes that the windows of t are over for the holder.
func (m *member) end(t tuple) {
	if m.endedOf != t.since {
		m.ended, m.endedOf = 0, t.since
	}
	m.ended = max(m.ended, t.end())
}

// Unplace leaves every window unknown that may have been open until now: some of what was
// admitted in it is in no report.
func (l *Limit) Unplace(now time.Time) { l.doubt(now, now) }

// count replaces what h reported for the row's windows before. What is said in
// the first round after a holder joined may be old.
func (l *Limit) count(h Holder, row Row, now time.Time, first bool) {
	t := tupleOf(&row)
	if t.N == 0 {
		return
	}
	p := l.periodOf(&row)
	if p == nil || t.end() <= p.dropped {
		l.prove(h, row, now)
		return
	}
	byHolder := l.rows[t]
	if byHolder == nil {
		byHolder = map[Holder]Row{}
		l.rows[t] = byHolder
	}
	old, resent := byHolder[h]
	if old.Final && !row.Final {
		return // overtaken on the way
	}
	byHolder[h] = row
	l.account(h).accepted += row.Admitted + row.Refused - old.Admitted - old.Refused
	l.traffic = l.traffic || row.Admitted+row.Refused > 0
	for id, open := range row.windows() {
		w := l.window(id, row.Age, now, first)
		w.claimed = max(w.claimed, open.Limit)
		if used := now.Add(-row.Age); w.used.IsZero() || used.Before(w.used) {
			w.used = used
		}
		w.replace(h, old, resent, row)
		if l.figures[id.windows] != nil && !row.Final && !first {
			p.used[id.windows] = now
		}
	}
	p.reached = max(p.reached, t.start())
}

// window returns the window, new when it was never heard of; old says that it may
// have ended long ago, and age when it was used first.
func (l *Limit) window(id windowID, age time.Duration, now time.Time, old bool) *window {
	if w := l.windows[id]; w != nil {
		return w
	}
	w := newWindow(id, now)
	if age > 0 { // by which its clock may have been suspended
		age = max(age, duration(l.period(id.since).reached.Sub(id.end())))
	}
	switch {
	case !old && age > l.interval:
		w.began = earlier(l.began(id, now), l.began(id, now.Add(-age)))
	case !old:
		w.began = l.began(id, now)
	case age > 0:
		w.began = now.Add(-age - duration(id.length()) - slackReports*l.interval)
	}
	w.unplaced = !l.unplaced.IsZero() && !w.began.After(l.unplaced)
	for h, at := range l.losses {
		if !w.began.After(at) {
			w.missing[h] = struct{}{}
		}
	}
	l.windows[id] = w
	return w
}

// began returns an instant after which the window began that a holder used since
// its last report: it is at most its length old, and an earlier one was in use
// before it.
func (l *Limit) began(id windowID, now time.Time) time.Time {
	began := now.Add(-duration(id.length()))
	if l.newest(id) {
		began = later(began, l.period(id.since).used[id.windows])
	}
	return began.Add(-slackReports * l.interval)
}

// newest reports whether id is later than every window of its period and length.
func (l *Limit) newest(id windowID) bool {
	for other := range l.windows {
		if other.since == id.since && other.windows == id.windows && other.index >= id.index {
			return false
		}
	}
	return true
}

// drop forgets the oldest rows and windows beyond the bound.
func (l *Limit) drop() {
	retained := retainedTuples
	if l.keyed {
		retained = retainedKeyedTuples
	}
	retained = max(retained, int(measureReports*l.interval/l.shortest()))
	for len(l.rows) > retained {
		oldest := l.oldest()
		delete(l.rows, oldest)
		l.period(oldest.since).drop(oldest)
	}
	for id, w := range l.windows {
		if !w.measured || id.end() > l.period(id.since).dropped {
			continue
		}
		if f := l.figures[id.windows]; f != nil && !w.known {
			f.lacking = true
		}
		delete(l.windows, id)
	}
	if len(l.windows) > maxWindows {
		l.forget() // no clock runs through so many windows: a holder invents them
		l.lack()
	}
}

// forget drops every row and window. Rows of those that are open may come again.
func (l *Limit) forget() {
	for t, byHolder := range l.rows {
		if p := l.period(t.since); t.end() <= p.reached {
			p.drop(t)
			continue
		}
		for h, row := range byHolder {
			if a := l.accounts[h]; a != nil {
				a.accepted -= row.Admitted + row.Refused
			}
		}
	}
	clear(l.rows)
	clear(l.windows)
}

// oldest returns the tuple that ended first, of stores that do not serve any longer before
// those of the one that does.
func (l *Limit) oldest() tuple {
	var oldest tuple
	for t := range l.rows {
		serves, before := t.since == l.promised.Since, oldest.since == l.promised.Since
		if oldest.N == 0 || before && !serves || before == serves && t.end() < oldest.end() {
			oldest = t
		}
	}
	return oldest
}

// Advance measures the windows that every holder has accounted for by now and
// returns what holders have to be asked before more can be measured.
func (l *Limit) Advance(now time.Time) []Query {
	unmeasured := l.unmeasured()
	if len(unmeasured) == 0 {
		return nil
	}
	var queries []Query
	reached := l.times()
	for _, w := range unmeasured {
		if !w.over && (reached[w.id.since] >= w.id.end() || now.Sub(w.heard) >= duration(w.id.length())) {
			w.close(l.members, now)
		}
		if !w.over || !w.settled(l.members, l.overdue(w, now)) {
			continue
		}
		if q, ok := l.ask(w); ok {
			queries = append(queries, q)
		}
		if w.answered(l.members) && !l.awaits(w, now) {
			l.measure(w)
		}
	}
	return queries
}

// overdue reports whether w is not waited for any longer. A holder may take a
// window to be open for its length too long when it could not learn its end.
func (l *Limit) overdue(w *window, now time.Time) bool {
	return w.id.end() <= l.period(w.id.since).dropped || now.Sub(w.closed) > duration(w.id.length())+patience*l.interval
}

// unmeasured returns the windows that are still to be measured, oldest first.
func (l *Limit) unmeasured() []*window {
	var out []*window
	for _, w := range l.windows {
		if !w.measured {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *window) int { return a.id.compare(b.id) })
	return out
}

func (l *Limit) measure(w *window) {
	w.measured = true
	f := l.figures[w.id.windows]
	if f == nil {
		return // of a rate the policy no longer has
	}
	m := l.outcome(w)
	w.known = m.known
	f.enter(m)
	if unused, ok := l.leastUnused(); ok {
		l.worstUnused = max(l.worstUnused, unused)
	}
}

// outcome sets what is known of w against what it may admit.
func (l *Limit) outcome(w *window) measurement {
	carry, unsettled := l.promised.Carry, l.promised.Unsettled
	if l.mixes(w) {
		carry, unsettled = max(carry, l.before.carry), unsettled || l.before.unsettled
	}
	var losses int64
	known := true
	if l.resumes(w) {
		losses, known = l.lossesIn(w)
	}
	m := w.measure(l.ceilingsOf(w), carry, losses)
	m.unexplained = !known && m.excess > 0
	m.unsettled = unsettled || w.id.open().Start() <= l.promised.Reset && l.promised.Reset < w.id.end()
	m.early, m.full = !w.began.After(l.since), w.began.After(l.changed)
	m.past = w.id.since != l.promised.Since
	return m
}

// ceilingsOf returns what holds in w: while holders go over to another generation, the
// largest that one of them worked by.
func (l *Limit) ceilingsOf(w *window) ceilings {
	var claimed, before int64
	if l.mixes(w) {
		claimed, before = w.claimed, l.before.most[w.id.windows]
	}
	of := func(p Promise) ceiling {
		c := p.of(w.id.windows)
		return ceiling{most: max(c.most, claimed, before), limit: max(c.limit, claimed)}
	}
	every := of(l.promised.Promise)
	return func(hash string) ceiling {
		if p, ok := l.promised.Overrides[hash]; ok {
			return of(p)
		}
		return every
	}
}

func (l *Limit) lagging() bool {
	for _, m := range l.members {
		if m.reported && m.generation < l.generation {
			return true
		}
	}
	return false
}

func duration(d limiter.Micros) time.Duration { return time.Duration(d) * time.Microsecond }

func earlier(t, u time.Time) time.Time {
	if u.Before(t) {
		return u
	}
	return t
}

func later(t, u time.Time) time.Time {
	if u.After(t) {
		return u
	}
	return t
}

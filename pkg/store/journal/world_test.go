package journal

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A world is everything that can happen around the counters of one policy: leaders that
// follow each other, while the former may not know it yet; the place where the record is
// kept; messages to it that are late or lost; and an auditor that counts what was granted
// without looking at any of it.
type world struct {
	rules   rules
	now     limiter.Instant
	kept    Record
	version int
	leaders []*leader
	granted map[Key]map[int64]int64 // by window
	units   int64                   // granted in all
}

// rules are those of the search, and what it may be weakened by.
type rules struct {
	params limiter.Params
	keys   []Key
	terms  int
	until  limiter.Instant
	most   int // bytes of a record's entries

	forgets bool // a successor does not charge what was set aside
	hasty   bool // a record counts before it is known to be written
	blind   bool // a write does not look at what it replaces
	ahead   bool // a leader that was followed serves by a clock that is not leased
}

// A leader is one term.
type leader struct {
	*Journal
	counters map[Key]counter
	read     int             // version of the record that it goes on from
	from     limiter.Instant // serves nothing before
	until    limiter.Instant // and nothing from here on; 0 while nobody followed
	sent     *Record         // whose result is not known
}

type counter struct {
	state   limiter.State
	account *Account
}

const limit = "l"

func newWorld(r rules) *world {
	return &world{rules: r, now: 1, granted: map[Key]map[int64]int64{}}
}

func (w *world) clone() *world {
	c := *w
	c.leaders = make([]*leader, len(w.leaders))
	for i, l := range w.leaders {
		c.leaders[i] = l.clone()
	}
	c.granted = map[Key]map[int64]int64{}
	for k, of := range w.granted {
		c.granted[k] = maps.Clone(of)
	}
	return &c
}

func (l *leader) clone() *leader {
	c, j := *l, *l.Journal
	j.limits, j.entries = map[string]*section{}, maps.Clone(l.entries)
	for name, s := range l.limits {
		j.limits[name] = new(*s)
	}
	j.leaving, j.dirty, j.gone = maps.Clone(l.leaving), maps.Clone(l.dirty), maps.Clone(l.gone)
	c.Journal, c.counters = &j, map[Key]counter{}
	for k, of := range l.counters {
		c.counters[k] = counter{of.state, new(*of.account)}
	}
	return &c
}

// String differs for worlds that differ in anything that matters.
func (w *world) String() string {
	text := fmt.Sprint(w.now, w.version, w.kept, w.granted, len(w.leaders))
	for _, l := range w.leaders {
		text += fmt.Sprint(l.from, l.until, l.read, l.sent, l.term, l.seq, l.acked, l.fenced, l.entries, l.leaving, l.dirty, l.gone, l.changed, l.urgent)
		for _, s := range l.limits {
			text += fmt.Sprint(*s)
		}
		for _, k := range w.rules.keys {
			if c, ok := l.counters[k]; ok {
				text += fmt.Sprint(k, c.state.Slice(), *c.account)
			}
		}
	}
	return text
}

// follow begins a term. The clock goes on after all that was served.
func (w *world) follow() {
	w.now++
	for _, l := range w.leaders {
		if l.until == 0 {
			l.until = w.now
		}
	}
	l := &leader{from: w.now}
	w.leaders = append(w.leaders, l)
	w.load(l, uint64(len(w.leaders)))
}

// load has a leader begin from the record as it is.
func (w *world) load(l *leader, term uint64) {
	l.Journal, l.read, l.counters = w.successor(term, w.now), w.version, map[Key]counter{}
}

// successor returns the journal of a term that begins at an instant.
func (w *world) successor(term uint64, at limiter.Instant) *Journal {
	known := w.rules.until + 1
	if w.rules.forgets {
		known = 0
	}
	j := New(term, at, w.kept, known, w.rules.most)
	j.Open(limit, Scope{Window: w.rules.params.Rates[0].Window, Limit: w.rules.params.Rates[0].Limit})
	return j
}

// clock is what the leader's clock shows.
func (w *world) clock(l *leader) limiter.Instant {
	if l.until > 0 && !w.rules.ahead {
		return min(w.now, l.until-1)
	}
	return w.now
}

// take asks a leader for units and returns what it grants.
func (w *world) take(l *leader, k Key, least, most int64) int64 {
	p, now := w.rules.params, w.clock(l)
	c, ok := l.counters[k]
	if !ok {
		c = counter{state: l.State(k, p), account: l.Account(k)}
	}
	next, res, _ := l.Step(k, c.state, c.account, p, now, limiter.Command{
		Min: least, Want: most, Memory: limiter.Memory{Since: l.Past(k)},
	})
	c.state = next
	l.counters[k] = c
	if w.granted[k] == nil {
		w.granted[k] = map[int64]int64{}
	}
	w.granted[k][p.Rates[0].WindowAt(now).Index] += res.Granted
	w.units += res.Granted
	return res.Granted
}

// write makes the leader's next record, which is on its way from then on.
func (w *world) write(l *leader) {
	for _, k := range l.Dirty() {
		c := l.counters[k]
		l.Enter(k, c.account, c.state, w.clock(l), limiter.Second)
	}
	record := l.Write(w.clock(l))
	record.Keys = maps.Clone(record.Keys)
	l.sent = &record
	if w.rules.hasty {
		l.Acknowledge(record.Seq)
	}
}

// arrive has what a leader sent reach the place where the record is kept, once or again.
func (w *world) arrive(l *leader) {
	if l.read == w.version || w.rules.blind {
		w.kept, w.version = *l.sent, w.version+1
	}
}

// answer has a leader learn the outcome of what it sent: it looks.
func (w *world) answer(l *leader) {
	switch {
	case w.kept.Term == l.term && w.kept.Seq == l.seq:
		l.read = w.version
		l.Acknowledge(l.seq)
		l.sent = nil
	case w.kept.Term > l.term || l.acked > 0:
		l.Fence()
		l.sent = nil
	default: // somebody wrote before this term did
		w.load(l, l.term)
		l.sent = nil
	}
}

// sweep drops what the leader holds of a counter that has ended.
func (w *world) sweep(l *leader, k Key) bool {
	c, ok := l.counters[k]
	if !ok || c.state.KeepFor(w.clock(l)) > 0 {
		return false
	}
	delete(l.counters, k)
	l.Forget(k)
	return true
}

// uncovered returns a key that was granted more than a successor that begins now takes for
// granted: Covered of GaleJournal.
func (w *world) uncovered() string {
	p, at := w.rules.params, w.now+1
	next := w.successor(uint64(len(w.leaders)+1), at)
	open := p.Rates[0].WindowAt(at)
	for _, k := range w.rules.keys {
		if next.Past(k) > open.Start() {
			continue // nothing is granted of the window
		}
		var charged int64
		if s := next.State(k, p); s.N > 0 && s.Meters[0].Index == open.Index {
			charged = s.Meters[0].Used
		}
		if n := w.granted[k][open.Index]; n > charged {
			return fmt.Sprintf("window %d of %s: %d granted, and a successor knows of %d", open.Index, k.Hash, n, charged)
		}
	}
	return ""
}

// exceeded returns a window in which more was granted than the limit.
func (w *world) exceeded() string {
	for _, k := range slices.SortedFunc(maps.Keys(w.granted), compareKeys) {
		for index, n := range w.granted[k] {
			if n > w.rules.params.Rates[0].Limit {
				return fmt.Sprintf("window %d of %s: %d of %d", index, k.Hash, n, w.rules.params.Rates[0].Limit)
			}
		}
	}
	return ""
}

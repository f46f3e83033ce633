package audit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	tick     = 100 * time.Millisecond
	lateness = time.Second // after which a simulated holder takes a window to be over
)

// A truth is what a simulated fleet really did in one window.
type truth struct {
	keys  map[string]KeyCount
	total KeyCount
	// forgotten are the holders that died with counts of the window nobody has.
	forgotten map[Holder]bool
}

// A process is a simulated sidecar. It counts as sidecars do: a row is reported
// when it changed or became final, and names keys when it is final.
type process struct {
	holder    Holder
	phase     int
	connected bool
	returns   int // tick at which a broken stream is opened again; 0 for never
	admits    int64
	rows      []*processRow
	total     Totals
}

type processRow struct {
	tuple    tuple
	windows  limiter.Windows
	end      time.Time
	keys     map[string]KeyCount
	total    KeyCount
	changed  bool
	sentLast bool // as final
}

type simulation struct {
	t       *testing.T
	rng     *rand.Rand
	rates   []limiter.Rate
	keyed   bool
	limit   *Limit
	now     time.Time
	ticks   int
	started int
	all     []*process
	truths  map[windowID]*truth
	calm    int   // the higher, the rarer are disturbances
	worst   int64 // of the windows that were found known
	known   map[windowID]bool
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &simulation{
		t: t, rng: rng, now: noon, keyed: rng.IntN(2) == 0, calm: 40 + rng.IntN(400),
		rates:  []limiter.Rate{{Limit: 5 + rng.Int64N(60), Window: limiter.Second}},
		truths: map[windowID]*truth{}, known: map[windowID]bool{},
	}
	if rng.IntN(2) == 0 {
		s.rates = append(s.rates, limiter.Rate{Limit: 10 + rng.Int64N(200), Window: 4 * limiter.Second})
	}
	s.limit = New(time.Second, Config{Generation: 1, Promise: Promise{Rates: s.rates}, Keyed: s.keyed}, noon)
	for range 1 + rng.IntN(5) {
		s.start()
	}
	return s
}

func (s *simulation) start() {
	s.started++
	p := &process{
		holder: NewHolder(fmt.Sprint("pod", s.started), "1"),
		phase:  s.rng.IntN(10), connected: true, admits: 1 + s.rng.Int64N(8),
	}
	s.limit.Join(p.holder, s.now)
	s.all = append(s.all, p)
}

// serve lets a process decide some requests in the windows open at now.
func (s *simulation) serve(p *process) {
	for range s.rng.IntN(3) {
		key := KeyCount{Hash: fmt.Sprint("key", s.rng.IntN(6))}
		if !s.keyed {
			key.Hash = ""
		}
		if s.rng.IntN(4) == 0 {
			key.Refused = 1 + s.rng.Int64N(4)
		} else {
			key.Admitted = 1 + s.rng.Int64N(p.admits)
		}
		row := p.row(s.windows())
		row.count(key)
		p.total.Admitted += key.Admitted
		p.total.Refused += key.Refused
		p.total.RoundTrips++
		for _, w := range row.windows.Slice() {
			s.truth(windowID{windows: windowsOf(w.Rate), index: w.Index}).count(key)
		}
	}
}

func (s *simulation) windows() limiter.Windows {
	w := limiter.Windows{N: len(s.rates)}
	for i, r := range s.rates {
		w.Open[i] = limiter.OpenWindow{Rate: r, Index: s.now.UnixMicro() / int64(r.Window)}
	}
	return w
}

func (s *simulation) truth(id windowID) *truth {
	if s.truths[id] == nil {
		s.truths[id] = &truth{keys: map[string]KeyCount{}, forgotten: map[Holder]bool{}}
	}
	return s.truths[id]
}

func (c KeyCount) plus(d KeyCount) KeyCount {
	return KeyCount{Hash: d.Hash, Admitted: c.Admitted + d.Admitted, Refused: c.Refused + d.Refused}
}

func (x *truth) count(k KeyCount) {
	x.keys[k.Hash] = x.keys[k.Hash].plus(k)
	x.total = x.total.plus(k)
}

func (p *process) row(w limiter.Windows) *processRow {
	t := tupleOf(&Row{Windows: w})
	for _, r := range p.rows {
		if r.tuple == t {
			return r
		}
	}
	r := &processRow{tuple: t, windows: w, end: time.UnixMicro(int64(t.end())), keys: map[string]KeyCount{}}
	p.rows = append(p.rows, r)
	return r
}

func (r *processRow) count(k KeyCount) {
	r.keys[k.Hash] = r.keys[k.Hash].plus(k)
	r.total = r.total.plus(k)
	r.changed = true
}

// report sends what the audit has not heard, in random pieces.
func (s *simulation) report(p *process) {
	var rows []Row
	for _, r := range p.rows {
		final := s.now.Sub(r.end) >= lateness
		if !r.changed && final == r.sentLast {
			continue
		}
		r.changed, r.sentLast = false, final
		row := Row{Windows: r.windows, Final: final, Admitted: r.total.Admitted, Refused: r.total.Refused}
		if final && s.keyed {
			row.Keys, row.Unlisted = s.keysThatMatter(p, r)
		}
		rows = append(rows, row)
	}
	cut := s.rng.IntN(len(rows) + 1)
	for _, part := range [][]Row{rows[:cut], rows[cut:]} {
		s.limit.Report(p.holder, Report{Generation: 1, Totals: p.total, Rows: part}, s.now)
	}
	if s.rng.IntN(8) == 0 { // a duplicate
		s.limit.Report(p.holder, Report{Generation: 1, Totals: p.total, Rows: rows}, s.now)
	}
}

// keysThatMatter returns the keys that p admitted more of than its part in one of the row's
// windows, the most refused one, and the most admitted of any other. As holders come and go
// p may be wrong about how many there are.
func (s *simulation) keysThatMatter(p *process, r *processRow) (out []KeyCount, unlisted [limiter.MaxRates]int64) {
	holders := int64(1 + s.rng.IntN(s.started))
	var refused string
	for hash, k := range r.keys {
		if k.Refused > r.keys[refused].Refused {
			refused = hash
		}
	}
	for hash, k := range r.keys {
		hot := false
		var used [limiter.MaxRates]int64
		for i, w := range r.windows.Slice() {
			used[i] = p.admitted(windowID{windows: windowsOf(w.Rate), index: w.Index}, hash)
			hot = hot || used[i] > w.Limit/holders
		}
		if hot || hash == refused {
			out = append(out, k)
			continue
		}
		for i, sum := range used {
			unlisted[i] = max(unlisted[i], sum)
		}
	}
	slices.SortFunc(out, func(a, b KeyCount) int { return cmp.Compare(a.Hash, b.Hash) })
	return out, unlisted
}

func (p *process) admitted(id windowID, hash string) int64 {
	return p.counts(id)[hash].Admitted
}

func (p *process) counts(id windowID) map[string]KeyCount {
	sums := map[string]KeyCount{}
	for _, r := range p.rows {
		for _, w := range r.windows.Slice() {
			if id == (windowID{windows: windowsOf(w.Rate), index: w.Index}) {
				for hash, k := range r.keys {
					sums[hash] = sums[hash].plus(k)
				}
			}
		}
	}
	return sums
}

// answer replies as a sidecar does: with the keys it saw.
func (s *simulation) answer(p *process, q Query) {
	sums := p.counts(windowID{windows: windowsOf(q.Window.Open[0].Rate), index: q.Window.Open[0].Index})
	var keys []KeyCount
	for _, hash := range q.Hashes {
		if k, ok := sums[hash]; ok {
			keys = append(keys, k)
		}
	}
	s.limit.Reply(p.holder, q.ID, keys, false)
}

// disturb breaks a stream, kills a process or starts one.
func (s *simulation) disturb() {
	p := s.all[s.rng.IntN(len(s.all))]
	switch s.rng.IntN(s.calm) {
	case 0:
		s.start()
	case 1, 2: // the stream breaks
		if p.connected {
			s.limit.Lose(p.holder, s.now)
			p.connected, p.returns = false, s.ticks+5+s.rng.IntN(30)
		}
	case 3: // the process is killed
		if p.connected && len(s.all) > 1 {
			s.limit.Lose(p.holder, s.now)
			s.bury(p)
		}
	case 4: // the process stops in good order
		if p.connected && len(s.all) > 1 {
			s.report(p)
			s.limit.Leave(p.holder)
			if s.keyed {
				s.bury(p) // its open rows name no keys
			} else {
				s.all = slices.DeleteFunc(s.all, func(q *process) bool { return p == q })
			}
		}
	}
}

// bury removes a process. Windows for which its last word was not final may have
// lost counts.
func (s *simulation) bury(p *process) {
	for _, r := range p.rows {
		if r.sentLast && !r.changed {
			continue
		}
		for _, w := range r.windows.Slice() {
			s.truth(windowID{windows: windowsOf(w.Rate), index: w.Index}).forgotten[p.holder] = true
		}
	}
	s.all = slices.DeleteFunc(s.all, func(q *process) bool { return p == q })
}

func (s *simulation) comeBack(p *process) {
	p.connected, p.returns = true, 0
	s.limit.Join(p.holder, s.now)
	for _, r := range p.rows { // a new session hears everything
		r.changed = true
	}
	s.report(p)
}

func (s *simulation) step(quiet bool) {
	s.ticks++
	s.now = s.now.Add(tick)
	for _, p := range s.all {
		if !quiet {
			s.serve(p)
		}
		if !p.connected && s.ticks >= p.returns {
			s.comeBack(p)
		}
		if p.connected && s.ticks%10 == p.phase {
			s.report(p)
		}
	}
	if !quiet {
		s.disturb()
	}
	if s.ticks%5 == 0 {
		s.advance()
	}
}

func (s *simulation) advance() {
	for _, q := range s.limit.Advance(s.now) {
		for _, p := range s.all {
			if p.connected && slices.Contains(q.Holders, p.holder) {
				s.answer(p, q)
			}
		}
	}
	s.limit.Advance(s.now)
	s.check()
}

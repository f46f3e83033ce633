package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A sidecar is a simulated process that counts by the real book.
type sidecar struct {
	holder  Holder
	book    *count.Book
	limit   *count.Limit
	session uint64
	phase   int
	linked  bool            // its stream reaches the leader
	member  bool            // the leader takes it to be there
	known   *Limit          // the leader that it joined last
	noticed time.Time       // when the leader finds that the stream broke
	returns time.Time       // when it opens another; zero while it is linked
	wild    time.Time       // until when it admits whatever comes
	flood   time.Time       // until when it admits many keys
	since   limiter.Instant // the store that it asks serves from then on
}

// A world is a fleet, its leader and the truth about both.
type world struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	rates    []limiter.Rate
	keyed    bool
	maxKeys  int
	calm     int  // the higher, the rarer are disturbances
	kills    bool // processes are killed and leaders change
	now      time.Time
	tick     time.Duration
	leader   *Limit
	sidecars []*sidecar
	started  int
	led      int                               // changes of leader
	since    limiter.Instant                   // the store that serves began to
	ahead    map[limiter.Instant]time.Duration // clocks of the stores that served, by since
	admitted map[windowID]map[string]int64     // in truth
	worst    map[limiter.Rate]int64            // in truth
}

var worldRates = [][]limiter.Rate{
	{{Limit: 10, Window: limiter.Second}},
	{{Limit: 2, Window: 100 * limiter.Millisecond}},
	{{Limit: 40, Window: 10 * limiter.Second}},
	{{Limit: 10, Window: limiter.Second}, {Limit: 300, Window: 120 * limiter.Second}},
	{{Limit: 10, Window: limiter.Second}, {Limit: 100, Window: 15 * limiter.Second}, {Limit: 4000, Window: 3600 * limiter.Second}},
	{{Limit: 60, Window: 60 * limiter.Second}, {Limit: 4000, Window: limiter.Day}},
}

func newWorld(t *testing.T, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 13))
	w := &world{
		t: t, seed: seed, rng: rng, now: noon.Add(time.Duration(rng.Int64N(int64(time.Hour)))), tick: 250 * time.Millisecond,
		rates: worldRates[rng.IntN(len(worldRates))], keyed: rng.IntN(2) == 0, calm: []int{80, 300, 1000}[rng.IntN(3)], kills: rng.IntN(2) == 0,
		maxKeys:  []int{8, 60, 1000}[rng.IntN(3)],
		admitted: map[windowID]map[string]int64{}, worst: map[limiter.Rate]int64{},
		ahead: map[limiter.Instant]time.Duration{0: 0},
	}
	w.leader = w.lead(w.now)
	for range 2 + rng.IntN(3) {
		w.start(fmt.Sprint("pod", w.started))
	}
	return w
}

func (w *world) lead(since time.Time) *Limit {
	return New(time.Second, w.config(), since)
}

func (w *world) config() Config {
	return Config{Generation: 1, Since: w.since, Promise: Promise{Rates: w.rates}, Keyed: w.keyed}
}

// move has another store serve, whose clock differs from that of the one before.
func (w *world) move() {
	ahead := w.upTo(4*time.Minute) - 2*time.Minute
	w.since = limiter.Instant(w.now.Add(ahead).UnixMicro())
	w.ahead[w.since] = ahead
	w.leader.Reconfigure(w.config(), w.now)
	w.follow()
}

// follow has the sidecars that the leader reaches ask the store that serves.
func (w *world) follow() {
	for _, s := range w.sidecars {
		if s.linked {
			s.since = w.since
		}
	}
}

func (w *world) start(pod string) {
	w.started++
	s := &sidecar{
		holder: NewHolder(pod, strconv.Itoa(w.started)), session: 1, phase: w.rng.IntN(4), linked: true, member: true,
		since: w.since,
		book:  count.NewBook(func(value string) string { return value }, nil),
	}
	s.limit = s.book.Open(count.Name{Namespace: "shop", Policy: "checkout", Limit: "all"},
		count.Settings{Generation: 1, Rates: w.rates, Keyed: w.keyed, MaxKeys: w.maxKeys, Holders: int64(1 + w.rng.IntN(4))})
	w.sidecars = append(w.sidecars, s)
	w.join(s)
}

func (w *world) join(s *sidecar) {
	w.leader.Join(s.holder, w.now)
	s.known = w.leader
}

// admit counts cost in the windows that are open, in truth and in the sidecar's book.
func (w *world) admit(s *sidecar, value string, cost int64) {
	at := limiter.Instant(w.now.Add(w.ahead[s.since]).UnixMicro())
	e := count.Event{Outcome: count.Admitted, Value: value, Cost: cost, Windows: &limiter.Windows{N: len(w.rates)}, Since: s.since}
	for i, r := range w.rates {
		open := r.WindowAt(at)
		e.Windows.Open[i] = open
		id := windowID{windows: windowsOf(r), index: open.Index, since: s.since}
		if w.admitted[id] == nil {
			w.admitted[id] = map[string]int64{}
		}
		w.admitted[id][value] += cost
		w.worst[windowsOf(r)] = max(w.worst[windowsOf(r)], w.admitted[id][value]-r.Limit)
	}
	e.EndsIn = duration(e.Windows.Open[0].End().Sub(at))
	s.limit.Count(w.now, e)
	if w.rng.IntN(8) == 0 {
		e.Outcome = count.Refused
		s.limit.Count(w.now, e)
	}
}

// serve lets a sidecar decide some requests: mostly within the limits, at times not.
func (w *world) serve(s *sidecar) {
	value := func() string {
		if !w.keyed {
			return ""
		}
		return strconv.Itoa(w.rng.IntN(4))
	}
	if w.rng.IntN(3) == 0 {
		w.admit(s, value(), 1)
	}
	if w.now.Before(s.wild) {
		w.admit(s, value(), 1+w.rng.Int64N(w.rates[0].Limit))
	}
	if w.keyed && w.now.Before(s.flood) {
		for range min(w.maxKeys, 200) {
			w.admit(s, strconv.Itoa(w.rng.IntN(2*w.maxKeys)), 1)
		}
	}
}

// report sends what the sidecar has to report. It is lost when the stream broke and the
// sidecar did not notice.
func (w *world) report(s *sidecar) {
	for _, in := range s.book.Report(w.now, s.session) {
		if s.linked {
			w.leader.Report(s.holder, reportOf(in), w.now)
		}
	}
}

// ask has the sidecars that are there answer a query.
func (w *world) ask(q Query) {
	message := &fleetpb.AuditQuery{Namespace: "shop", Policy: "checkout", Limit: "all", Hashes: q.Hashes, SinceMicros: int64(q.Since)}
	for _, open := range q.Window.Slice() {
		message.Windows = append(message.Windows, &fleetpb.Window{
			Rate: &fleetpb.Rate{Limit: open.Limit, WindowMicros: int64(open.Window)}, Index: open.Index,
		})
	}
	for _, s := range w.sidecars {
		if s.linked && slices.Contains(q.Holders, s.holder) {
			reply := s.book.Audit(message)
			w.leader.Reply(s.holder, q.ID, keysOf(reply.GetKeys()), reply.GetUnknown())
		}
	}
}

// cut breaks a sidecar's stream for a time.
func (w *world) cut(s *sidecar, away time.Duration) {
	if !s.linked {
		return
	}
	s.linked, s.noticed, s.returns = false, w.now.Add(w.upTo(5*time.Second)), w.now.Add(away)
	if w.rng.IntN(2) == 0 {
		s.wild = s.noticed.Add(w.upTo(6 * time.Second))
	}
	if w.rng.IntN(2) == 0 {
		s.flood = s.noticed.Add(w.upTo(6 * time.Second))
	}
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

// away is how long a stream is gone: seconds to minutes.
func (w *world) away() time.Duration {
	switch n := w.rng.IntN(40); {
	case n < 4:
		return time.Minute + w.upTo(10*time.Minute)
	case n < 20:
		return 10*time.Second + w.upTo(50*time.Second)
	}
	return w.upTo(10 * time.Second)
}

// disturb breaks something, now and then.
func (w *world) disturb() {
	s := w.sidecars[w.rng.IntN(len(w.sidecars))]
	switch w.rng.IntN(w.calm) {
	case 0, 1:
		w.cut(s, w.away())
	case 2: // the process is killed, and its container starts again
		if !w.kills || s.known != w.leader {
			return // a leader cannot know of a process that it never heard of
		}
		w.lose(s)
		w.remove(s)
		w.start(s.holder.PodUID())
	case 3: // it stops in good order, and another comes
		if s.linked {
			s.book.Finish()
			w.report(s)
			w.leader.Leave(s.holder)
			w.remove(s)
			w.start(fmt.Sprint("pod", w.started))
		}
	case 4:
		s.wild = w.now.Add(w.upTo(5 * time.Second))
	case 5:
		s.flood = w.now.Add(w.upTo(3 * time.Second))
	case 6:
		if w.kills && w.rng.IntN(4) == 0 {
			w.handOver()
		}
	case 7:
		if w.rng.IntN(4) == 0 {
			w.move()
		}
	}
}

func (w *world) remove(s *sidecar) {
	w.sidecars = slices.DeleteFunc(w.sidecars, func(other *sidecar) bool { return other == s })
}

func (w *world) lose(s *sidecar) {
	if s.member {
		w.leader.Lose(s.holder, w.now)
		s.member = false
	}
}

// handOver begins with another leader, to which sidecars return.
func (w *world) handOver() {
	w.led++
	w.leader = w.lead(w.now.Add(4 * time.Second))
	w.leader.Inherit()
	for _, s := range w.sidecars {
		s.member = false
		if s.linked {
			s.linked, s.noticed, s.returns = false, w.now, w.now.Add(w.upTo(3*time.Second))
		}
	}
}

// reports says whether a sidecar's report is due.
func (w *world) reports(s *sidecar) bool {
	return w.tick >= time.Second || int(w.now.Sub(noon)/w.tick)%4 == s.phase
}

func (w *world) step(quiet bool) {
	w.now = w.now.Add(w.tick)
	for _, s := range w.sidecars {
		if !quiet {
			w.serve(s)
		}
		if !s.linked && !w.now.Before(s.noticed) {
			w.lose(s)
		}
		if !s.linked && !s.member && !w.now.Before(s.returns) {
			s.linked, s.member, s.session, s.since = true, true, s.session+1, w.since
			w.join(s)
			w.report(s)
		} else if w.reports(s) && (s.linked || w.now.Before(s.noticed)) {
			w.report(s)
		}
	}
	if !quiet {
		w.disturb()
	}
	for _, q := range w.leader.Advance(w.now) {
		w.ask(q)
	}
	w.check()
}

// wait lets a long time pass while one sidecar is away.
func (w *world) wait(away time.Duration) {
	w.cut(w.sidecars[0], away)
	w.calm, w.tick = 20*w.calm, time.Second
	for range away / w.tick {
		w.step(false)
	}
	w.calm, w.tick = w.calm/20, 250*time.Millisecond
	for range 200 {
		w.step(false)
	}
}

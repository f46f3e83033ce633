package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A world is a run under way.
type world struct {
	Scenario
	now    instant
	end    instant
	events queue
	count  int64

	network *rand.Rand // what happens to messages
	chance  *rand.Rand // clocks and faults
	source  *source
	rules   rules
	keeper  keeper
	store   *server
	// controllers are nil while the server keeps the counters, and the lookout while nobody
	// looks at its clock.
	controllers *controllers
	lookout     *lookout
	nodes       []*node
	crew        crew
	flying      []*call // commands on their way to the store
	audit       *auditor
	trace       trace
}

// Streams of random numbers: what one of them is used for does not disturb the
// others, so different models see the same requests.
const (
	ofLoad = iota
	ofNetwork
	ofChance
	ofStorm
	ofNodes // and above, one each

	ofControllers = 1 << 32
	ofSteps       = 1 << 33
)

// Run plays a scenario to its end.
func Run(s Scenario) Result {
	w := newWorld(s)
	defer w.close()
	w.run()
	return w.result()
}

func newWorld(s Scenario) *world {
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, n)) }
	w := &world{Scenario: s, network: stream(ofNetwork), chance: stream(ofChance), trace: newTrace(), rules: production()}
	w.source = newSource(s.Load, s.Holders, stream(ofLoad))
	w.store = &server{world: w, clock: w.clock()}
	w.keeper = w.store
	window := s.Params.Rates[0].Window
	w.end = instant(s.Windows) * int64(window) * int64(time.Microsecond)
	w.audit = newAuditor(s.Params, w.time().Add(limiter.Micros(s.Warm)*window), len(s.Faults.Steps) > 0)
	for id := range s.Holders {
		n := &node{world: w, id: id, clock: w.clock(), rng: stream(ofNodes + uint64(id)), params: s.Params}
		w.nodes = append(w.nodes, n)
	}
	if s.Controllers > 0 {
		w.controllers = newControllers(w, s.Controllers)
		w.keeper = w.controllers
	}
	if s.Look > 0 {
		w.store.memory.Since = w.store.clock.micros(0).Add(-limiter.MaxWindow) // it has served for long
		w.lookout = &lookout{own: w.clock()}
		w.watch()
	}
	for _, n := range w.nodes {
		n.start()
	}
	w.wander()
	w.schedule()
	return w
}

// run lets everything happen in the order of true time.
func (w *world) run() {
	arrival := w.source.pause()
	for {
		at, ok := w.events.next()
		if ok && at <= arrival {
			if at >= w.end {
				return
			}
			w.count++
			e := w.events.take()
			w.now = e.at
			e.do()
			continue
		}
		if arrival >= w.end {
			return
		}
		w.count++
		w.now = arrival
		holder, cost := w.source.request()
		w.nodes[holder].request(cost)
		arrival += w.source.pause()
	}
}

// close ends what still runs.
func (w *world) close() {
	for _, n := range w.nodes {
		n.crash()
	}
	w.crew.dismiss()
}

// after lets do happen when d has passed.
func (w *world) after(d time.Duration, do func()) { w.events.add(w.now+int64(d), do) }

// time returns true time as the clock of the server would show it that is never set.
func (w *world) time() limiter.Instant { return limiter.Instant(w.store.clock.at(w.now) / 1000) }

// clock returns a clock that is wrong by chance.
func (w *world) clock() clock {
	year := int64(365 * 24 * time.Hour)
	return clock{read: 50*year + w.even(int64(w.Clocks.Offset)), rate: w.rate()}
}

func (w *world) rate() float64 { return w.Clocks.Drift * (2*w.chance.Float64() - 1) }

// even returns a number between -most and most.
func (w *world) even(most int64) int64 { return w.chance.Int64N(2*most+1) - most }

// wander changes what the clocks gain or lose, again and again.
func (w *world) wander() {
	if w.Clocks.Wander <= 0 {
		return
	}
	w.after(w.Clocks.Wander, func() {
		w.store.clock.drift(w.now, w.rate())
		for _, n := range w.nodes {
			n.clock.drift(w.now, w.rate())
		}
		if w.controllers != nil {
			for _, c := range w.controllers.all {
				c.clock.drift(w.now, w.rate())
			}
		}
		w.wander()
	})
}

func (w *world) result() Result {
	r := Result{
		Overshoot:   w.audit.overshoot,
		Utilization: w.audit.usage.utilization(),
		RoundTrips:  w.audit.usage.roundTrips(),
		Offered:     w.audit.offered,
		Admitted:    w.audit.admitted,
		Refused:     w.audit.refused,
		Events:      w.count,
		Digest:      w.trace.digest,
	}
	for _, n := range w.nodes {
		r.ByHolder = append(r.ByHolder, n.admitted)
	}
	return r
}

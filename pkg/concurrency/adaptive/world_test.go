package adaptive_test

import (
	"container/heap"
	"math/rand/v2"
	"slices"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A world is a backend with workers and one queue, before it a fleet of holders that
// each learn, and clients. At every beat the fleet agrees on the lower median of what
// was learned since the last, and each holder gets an equal share of it. A fleet of
// one is alone and goes by itself.
type world struct {
	now     limiter.Instant
	rand    *rand.Rand
	workers instants // when each is free
	service func(now limiter.Instant) limiter.Micros

	fleet    []*member
	limit    int64
	interval limiter.Micros // between arrivals, of the whole fleet
	beat     limiter.Instant
	ends     endings

	arrived int64
	held    int64 // of the arrived, while a measurement was on
	varies  bool  // service times are exponential

	served   int64
	latency  limiter.Micros // sum over the served
	inFlight int64
	most     int64

	// use says what a holder feeds its law; the ceiling in force when nil.
	use func(inFlight, ceiling int64, l *adaptive.Limit) adaptive.Use
}

type member struct {
	law      *adaptive.Limit
	share    int64
	learned  uint64
	idle     bool // nothing was learned since the last beat
	inFlight int64
	weight   int // of the arrivals
}

type ending struct {
	at, began limiter.Instant
	of        *member
	use       adaptive.Use
}

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at < e[j].at }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

type instants []limiter.Instant

func (w instants) Len() int           { return len(w) }
func (w instants) Less(i, j int) bool { return w[i] < w[j] }
func (w instants) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *instants) Push(x any)        { *w = append(*w, x.(limiter.Instant)) }
func (w *instants) Pop() any          { panic("workers stay") }

const beatEvery = limiter.Second

// newWorld returns a fleet of n holders before a backend of the workers.
func newWorld(c adaptive.Config, n, workers int, interval limiter.Micros, service func(limiter.Instant) limiter.Micros) *world {
	w := &world{
		rand: rand.New(rand.NewPCG(1, 2)), workers: make(instants, workers), service: service,
		limit: c.Initial, interval: interval,
	}
	for range n {
		w.fleet = append(w.fleet, &member{law: adaptive.New(c), weight: 1})
	}
	w.divide()
	return w
}

// divide is one beat of all holders.
func (w *world) divide() {
	var opinions []int64
	for _, m := range w.fleet {
		if learned := m.law.Learned(); learned != m.learned {
			m.learned, m.idle = learned, false
			opinions = append(opinions, m.law.Limit())
		} else {
			m.idle = true
		}
	}
	if len(opinions) > 0 {
		slices.Sort(opinions)
		w.limit = opinions[(len(opinions)-1)/2]
	}
	n := int64(len(w.fleet))
	for i, m := range w.fleet {
		m.share = w.limit / n
		if int64(i) < w.limit%n {
			m.share++
		}
		if n > 1 {
			m.law.Follow(w.limit, n)
			if m.idle {
				m.law.Adopt(w.limit, n)
			}
		}
	}
}

// run goes on until the instant, and returns goodput per second and mean latency since.
func (w *world) run(until limiter.Instant) (goodput float64, latency limiter.Micros) {
	from := w.now
	w.arrived, w.served, w.latency, w.most = 0, 0, 0, 0
	for next := w.now; ; next = w.now.Add(limiter.Micros(w.rand.ExpFloat64() * float64(w.interval))) {
		w.settle(min(next, until))
		if next >= until {
			break
		}
		w.now = next
		w.arrive(w.pick())
	}
	w.now = until
	return float64(w.served) / (float64(until.Sub(from)) / float64(limiter.Second)), w.latency / limiter.Micros(max(1, w.served))
}

// settle ends what ends until the instant, and beats.
func (w *world) settle(until limiter.Instant) {
	for {
		end := limiter.Instant(1<<62 - 1)
		if len(w.ends) > 0 {
			end = w.ends[0].at
		}
		if min(end, w.beat) > until {
			return
		}
		if w.beat <= end {
			w.divide()
			w.beat = w.beat.Add(beatEvery)
			continue
		}
		e := heap.Pop(&w.ends).(ending)
		rtt := e.at.Sub(e.began)
		e.of.inFlight--
		w.inFlight--
		w.served++
		w.latency += rtt
		e.of.law.Sample(e.at, rtt, e.use, false)
	}
}

// resize goes on with another number of workers. Those that stay are the first to be
// free; new ones are free now.
func (w *world) resize(workers int) {
	slices.Sort(w.workers)
	for len(w.workers) < workers {
		w.workers = append(w.workers, w.now)
	}
	w.workers = w.workers[:workers]
	heap.Init(&w.workers)
}

// pick draws the holder that a client sends to.
func (w *world) pick() *member {
	sum := 0
	for _, m := range w.fleet {
		sum += m.weight
	}
	k := w.rand.IntN(sum)
	for _, m := range w.fleet {
		if k -= m.weight; k < 0 {
			return m
		}
	}
	panic("unreachable")
}

func (w *world) arrive(m *member) {
	allowed := m.law.Ceiling(w.now)
	w.arrived++
	if allowed < m.law.Limit() {
		w.held++
	}
	ceiling := min(m.share, allowed)
	if m.inFlight >= ceiling {
		return
	}
	m.inFlight++
	w.inFlight++
	w.most = max(w.most, w.inFlight)
	use := adaptive.Use{InFlight: m.inFlight, Ceiling: ceiling}
	if w.use != nil {
		use = w.use(m.inFlight, ceiling, m.law)
	}
	start := max(w.now, w.workers[0])
	jitter := 0.9 + 0.2*w.rand.Float64()
	if w.varies {
		jitter = w.rand.ExpFloat64()
	}
	end := start.Add(limiter.Micros(float64(w.service(start)) * jitter))
	w.workers[0] = end
	heap.Fix(&w.workers, 0)
	heap.Push(&w.ends, ending{at: end, began: w.now, of: m, use: use})
}

package quality

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	fast, slow = 50 * time.Millisecond, 150 * time.Millisecond
	phase      = time.Minute
	patience   = time.Second // after which an answer is of no use any more
)

// A Load is what clients do.
type Load struct {
	Name      string
	PerSecond float64
	Processes int // that the requests spread over
}

// A Run is what one contender did under a load.
type Run struct {
	Contender string
	Load      Load
	Phases    []Phase
	Exceeded  int64 // requests in flight over what the fleet may have, at most
}

// A Phase is what a minute of a run showed.
type Phase struct {
	Service  time.Duration // of the backend
	Goodput  float64       // requests a second that were answered within a second
	P50, P99 time.Duration // from forwarded to answered, in the backend's queue and by it
	Peak     int64         // in flight at once
	Refused  float64       // of the requests
}

// Goodput returns the requests a second of the whole run that were answered within a
// second.
func (r Run) Goodput() float64 {
	var sum float64
	for _, p := range r.Phases {
		sum += p.Goodput
	}
	return sum / float64(len(r.Phases))
}

// P99 returns the largest 99th percentile of a phase.
func (r Run) P99() time.Duration {
	var most time.Duration
	for _, p := range r.Phases {
		most = max(most, p.P99)
	}
	return most
}

// run runs a contender. It has to be called in a bubble of testing/synctest.
func run(name string, f fleet, l Load, seed uint64) Run {
	out := Run{Contender: name, Load: l}
	r := runner{fleet: f, load: l, backend: newBackend(seed), rand: rand.New(rand.NewPCG(seed, 2))}
	time.Sleep(patience) // until everybody has heard of everybody
	for _, service := range []time.Duration{fast, slow, fast} {
		out.Phases = append(out.Phases, r.phase(service))
	}
	r.requests.Wait()
	f.close()
	out.Exceeded = max(0, f.exceeded())
	return out
}

// A runner sends requests.
type runner struct {
	fleet    fleet
	load     Load
	backend  *backend
	rand     *rand.Rand
	requests sync.WaitGroup
}

// phase sends requests for a phase with a backend that takes the service time.
func (r *runner) phase(service time.Duration) Phase {
	r.backend.become(service)
	t := &tally{}
	for end := time.Now().Add(phase); time.Now().Before(end); {
		time.Sleep(time.Duration(r.rand.ExpFloat64() / r.load.PerSecond * float64(time.Second)))
		r.send(t)
	}
	return t.sum(service)
}

// send sends one request to a random process.
func (r *runner) send(t *tally) {
	release := r.fleet.acquire(r.rand.IntN(r.load.Processes))
	if release == nil {
		t.refuse()
		return
	}
	t.admit(r.backend.enter())
	r.requests.Go(func() {
		begin := time.Now()
		r.backend.serve()
		r.backend.leave()
		release()
		t.answer(time.Since(begin))
	})
}

// A tally counts what happens in a phase. A request belongs to the phase in which it
// ended.
type tally struct {
	mu        sync.Mutex
	sent      int
	refused   int
	latencies []time.Duration
	peak      int64
}

func (t *tally) refuse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	t.refused++
}

func (t *tally) admit(inFlight int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	t.peak = max(t.peak, inFlight)
}

func (t *tally) answer(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latencies = append(t.latencies, took)
}

// sum sums up.
func (t *tally) sum(service time.Duration) Phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.latencies)
	timely, _ := slices.BinarySearch(t.latencies, patience+1)
	return Phase{
		Service: service,
		Goodput: float64(timely) / phase.Seconds(),
		P50:     t.quantile(0.5), P99: t.quantile(0.99),
		Peak: t.peak, Refused: float64(t.refused) / float64(t.sent),
	}
}

// quantile returns the latency that the part q of the requests did not exceed.
func (t *tally) quantile(q float64) time.Duration {
	if len(t.latencies) == 0 {
		return 0
	}
	return t.latencies[int(q*float64(len(t.latencies)-1))]
}

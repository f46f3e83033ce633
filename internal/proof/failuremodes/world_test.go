package failuremodes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

const id = "acme/checkout"

var key = store.Key{Scope: store.Scope{Cluster: "c", Namespace: "ns", Policy: "p", Limit: "l"}}

// Defaults of a row. The page shows them.
const (
	limit        = int64(1000)
	window       = limiter.Second
	regions      = 3
	idle         = int64(-1)              // of load
	ease, press  = int64(300), int64(600) // units each region is asked for in a second
	blockPercent = 10
	way          = 5 * time.Millisecond  // to the coordinator, and back
	patience     = 50 * time.Millisecond // of a request
	tick         = 10 * time.Millisecond
)

// A setup is the world that a fault happens in.
type setup struct {
	regions   int
	processes int // of each region
	windows   int // how many times as long a window is, at the same rate
	load      int64
	outage    federation.Outage
	nominal   int64 // of each member, which lends nothing of it
	timeout   time.Duration
	steps     bool // the coordinator's clock is set, so that it does not distinguish windows
	mortal    bool // processes are killed, so that requests to them are not answered

	coordinator func(w *world) federation.Coordinator // in real time; nil for a hub in virtual time
	escrow      func(w *world) federation.Escrow      // one for each region; nil for none
}

// A world is a budget over some regions under load.
type world struct {
	t       *testing.T
	setup   setup
	params  ledger.Params
	limits  limiter.Params
	began   time.Time
	hub     *hub     // nil in real time
	servers *servers // nil in virtual time
	regions []*region

	stop    context.CancelFunc
	work    sync.WaitGroup
	failed  atomic.Int64   // requests that an error answered
	carried sync.WaitGroup // messages that are on the way

	mu      sync.Mutex // guards all below
	asks    []ask
	named   map[int64]int64 // units admitted of each window that a grant named
	clocked map[int64]int64 // and in each window of the coordinator's clock
}

// An ask is one request and what it was answered.
type ask struct {
	at             time.Duration // since the world began
	region         int
	wanted, gotten int64
	index          int64 // of the window, when anything was granted
}

// newWorld returns a row's world, in which the second window has just begun: a budget is
// served from there on.
func newWorld(t *testing.T, r *row) *world {
	w := &world{t: t, setup: r.setup, began: time.Now(), named: map[int64]int64{}, clocked: map[int64]int64{}}
	s := &w.setup
	s.regions, s.processes, s.windows = orElse(s.regions, regions), orElse(s.processes, 1), orElse(s.windows, 1)
	s.load = orElse(s.load, ease)
	w.params = ledger.Params{
		Limit: limit * int64(s.windows), Window: window * limiter.Micros(s.windows), Slices: s.nominal > 0,
		Block: limit * int64(s.windows) * blockPercent / 100,
	}
	for i := range s.regions {
		w.params.Members = append(w.params.Members, ledger.Member{
			Name: fmt.Sprintf("region-%d", i), Weight: 1, Nominal: s.nominal, Kept: s.nominal, Borrowing: -1,
		})
	}
	w.limits = limiter.Params{Algorithm: limiter.FixedWindow, Rates: []limiter.Rate{{Limit: w.params.Limit, Window: w.params.Window}}}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(t.Context())
	var to federation.Coordinator
	if s.coordinator != nil {
		w.servers = new(servers)
		to = s.coordinator(w)
	} else {
		w.hub = newHub()
		to = w.hub
	}
	for i := range s.regions {
		w.regions = append(w.regions, newRegion(w, i, to))
	}
	if w.hub == nil {
		w.awaitConnected()
	}
	for _, r := range w.regions {
		w.work.Go(func() { r.load(ctx) })
	}
	if w.hub != nil {
		w.nextWindow()
		w.nextWindow()
	}
	return w
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// end ends the load and the regions.
func (w *world) end() {
	w.stop()
	w.work.Wait()
	for _, r := range w.regions {
		for p := range r.processes {
			r.kill(p)
		}
	}
	w.carried.Wait()
	if w.hub != nil {
		synctest.Wait() // for writes ahead
	}
}

// at returns the time since the world began.
func (w *world) at() time.Duration { return time.Since(w.began) }

// pass lets time pass, in virtual time.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// nextWindow waits until a window of the hub's clock has begun.
func (w *world) nextWindow() {
	length := int64(w.params.Window)
	w.pass(time.Duration(length-int64(w.hub.now())%length+1000) * time.Microsecond)
}

// length returns how long a window is.
func (w *world) length() time.Duration { return time.Duration(w.params.Window) * time.Microsecond }

// index returns the number of the window that is open by the hub's clock.
func (w *world) index() int64 { return int64(w.hub.now()) / int64(w.params.Window) }

// ask asks a process for units, and notes what it was given.
func (w *world) ask(ctx context.Context, region int, p *federation.Region, want int64) {
	a := ask{at: w.at(), region: region, wanted: want}
	res, err := p.Apply(ctx, key, w.limits, limiter.Command{Op: limiter.Take, Min: 1, Want: want})
	if ctx.Err() != nil && res.Granted == 0 {
		return // the world ended
	}
	if unavailable := (*store.UnavailableError)(nil); err != nil && (!w.setup.mortal || !errors.As(err, &unavailable)) {
		w.failed.Add(1)
		w.t.Logf("after %v: %v", a.at, err)
	}
	if err == nil && res.Granted == 0 && (res.Reason != limiter.Exhausted || res.RetryAfter <= 0) {
		w.t.Errorf("after %v: refused without a time to come again: %+v", a.at, res)
	}
	if a.gotten = res.Granted; a.gotten > 0 {
		a.index = res.Windows.Open[0].Index
	}
	w.note(a)
}

// note notes a request.
func (w *world) note(a ask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asks = append(w.asks, a)
	w.named[a.index] += a.gotten
	if w.hub != nil && !w.setup.steps {
		w.clocked[w.index()] += a.gotten
	}
}

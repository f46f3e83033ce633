package federation

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// firstRetry is how long after a failure the coordinator or the escrow is tried again;
// the time doubles from failure to failure. Up to half as much again is added at random,
// so that regions do not return in step.
const firstRetry = 100 * time.Millisecond

// errOlder is why an answer of another coordinator than the one that served last does
// not count: of one window the later term has the say.
var errOlder = errors.New("an earlier memory of the coordinator answered; the one after it has served already")

// errReplaced says why an answer that came after Reconfigure is of no use.
var errReplaced = errors.New("the windows have another length by now")

// A link is what is known of the coordinator.
type link struct {
	outage
	answered bool // ever
	sent     int64
	trip     trip
	estimate estimate
	epoch    ledger.Epoch // the latest that an answer named
	slice    int64        // units of each later window that need no grant
	promised int64        // what of that the escrow last said it heard
	opened   int64        // the last window that was begun with them
	checked  int64        // when it was last looked what of the window is not needed
	dry      dry
	grant    ledger.Grant // the last answer
	heard    time.Time    // when it came
}

func newLink(now int64) link {
	l := link{outage: outage{retryAt: now}}
	l.begin(now)
	return l
}

// begin forgets what is of windows of one length.
func (l *link) begin(now int64) {
	l.epoch, l.slice, l.opened, l.checked, l.dry, l.retryAt = ledger.Epoch{}, 0, 0, past, dry{until: past}, now
}

// older reports whether an answer came from a coordinator that another one followed.
func (l *link) older(g *ledger.Grant) bool {
	return g.Epoch.Index > 0 && // otherwise it says nothing of any window
		(g.Epoch.Index < l.epoch.Index || g.Epoch.Index == l.epoch.Index && g.Epoch.Term < l.epoch.Term)
}

// hear takes note of an answer.
func (l *link) hear(g ledger.Grant, sent, received int64) {
	if !l.answered || l.cause != nil {
		l.since = time.Now()
	}
	if g.Epoch.Index > 0 && g.Epoch.Term != l.epoch.Term {
		l.estimate = estimate{} // another machine may serve now
	}
	l.estimate = l.estimate.observe(sent, received, g.Now)
	l.trip.observe(received - sent)
	l.answered, l.cause, l.failures = true, nil, 0
	l.grant, l.heard = g, time.Now()
	if g.Epoch.Index > 0 {
		l.epoch = g.Epoch
	}
}

// An outage is how long something has been away, and when it is tried again.
type outage struct {
	cause    error // nil when it is there
	since    time.Time
	failures int   // in a row
	retryAt  int64 // instant of the next attempt
}

// fail notes a failure, after which it is tried again within longest.
func (o *outage) fail(now int64, err error, longest time.Duration) {
	if o.cause == nil {
		o.since = time.Now()
	}
	wait := min(firstRetry<<min(o.failures, 10), longest)
	o.cause = err
	o.failures++
	o.retryAt = now + int64(wait) + rand.Int64N(int64(wait)/2+1)
}

// A trip is how long commands take, smoothed, and by how much that varies (Jacobson
// 1988), in nanoseconds.
type trip struct{ mean, deviation float64 }

func (t *trip) observe(d int64) {
	if t.mean == 0 {
		t.mean, t.deviation = float64(d), float64(d)/2
		return
	}
	off := float64(d) - t.mean
	t.mean += off / 8
	t.deviation += (max(off, -off) - t.deviation) / 4
}

// most returns how long a command takes that is not quick.
func (t *trip) most() float64 { return t.mean + 2*t.deviation }

// dry notes that there was nothing for those that need least units. Nothing is asked for
// before until, and ask is when it may be worth asking again.
type dry struct {
	least      int64
	until, ask int64
}

package federation

import (
	"errors"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// heard takes note of an answer of the coordinator, unless it came from one that
// another followed, or is about windows of a length that is not in force any more.
func (r *Region) heard(v *vault, g ledger.Grant, sent, received int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v != r.main && v != r.spare {
		return errReplaced
	}
	if r.link.older(&g) {
		return &store.UnavailableError{Store: "the coordinator of budget " + r.config.ID, Cause: errOlder}
	}
	r.link.hear(g, sent, received)
	return nil
}

// granted goes on with an answer that was brought to the escrow.
func (r *Region) granted(o order, c ledger.Command, g ledger.Grant, now int64) {
	if o.vault == r.main {
		r.link.slice, r.link.promised = g.Slice, max(r.link.promised, g.Slice)
	}
	if o.vault == r.spare && r.access.cause == nil {
		r.spare = nil // it is empty
	}
	brought := g.Granted
	if g.Epoch == c.Epoch {
		brought -= c.Granted
	}
	r.counts.granted += max(0, brought)
	r.demand.claim.note(g.Epoch.Index, max(c.Demand, g.Granted), c.Op == ledger.Release && g.Reason == ledger.Granted)
	if g.Epoch.Index > 0 {
		r.demand.level = reached(&c, &g, r.config.self().Nominal)
	}
	if c.Op != ledger.Lease {
		return
	}
	r.learn(&c, &g, brought)
	r.link.dry = dry{until: past}
	if g.Reason != ledger.Granted {
		r.link.dry = r.pause(&c, &g, now)
	}
}

// learn learns the size of leases from an answer.
func (r *Region) learn(c *ledger.Command, g *ledger.Grant, brought int64) {
	res := limiter.Result{Granted: max(0, brought), Remaining: g.Remaining, Limit: g.Limit}
	if g.Reason == ledger.Exhausted || g.Reason == ledger.Kept {
		res.Reason = limiter.Exhausted
	}
	r.demand.sizer = r.rule.Heard(r.demand.sizer, c.Want, res, float64(g.ExpiresIn)/float64(r.config.Params.Window))
}

// pause returns for how long nothing is asked for after an answer that brought nothing.
// Others give back what they do not need, most of it late in the window.
func (r *Region) pause(c *ledger.Command, g *ledger.Grant, now int64) dry {
	const part = 4 // of the rest of the window
	retry := nanos(g.RetryAfter)
	if retry <= 0 {
		retry = int64(time.Second)
	}
	wait := max(nanos(g.ExpiresIn)/part, int64(r.link.trip.mean), int64(time.Millisecond))
	switch {
	case g.ExpiresIn == 0:
		wait = retry
	case g.Reason == ledger.Amnesia:
		wait = min(wait, longestLearning) // other members may vouch for its memory at any time
	}
	d := dry{least: c.Min, until: now + min(wait, retry), ask: now + retry}
	if g.Reason == ledger.Exhausted || g.Reason == ledger.Kept {
		d.ask = d.until
	}
	return d
}

// longestLearning is the longest time between two questions whether a window may be served
// that began before the coordinator's memory did.
const longestLearning = int64(time.Second)

// failed goes on without the coordinator.
func (r *Region) failed(now int64, err error) {
	if errors.Is(err, errReplaced) {
		return
	}
	if r.link.cause == nil {
		r.counts.outages++
	}
	r.link.fail(now, err, r.config.Probe)
}

package simulate

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// A controller is a node on which a process runs that may lead.
type controller struct {
	of       *controllers
	clock    clock
	identity int  // of the process; 0 while none runs
	cut      bool // from the API server

	past     leadership.Past
	observed int   // version of the Lease that it saw last
	since    int64 // when it first did
	writing  bool  // a write of the Lease is under way
	renewal  *leadership.Renewal

	// The clock by which it serves: what it showed first, and when that was.
	first limiter.Instant
	at    int64

	store *memory.Store // nil while it does not lead
	term  uint64
}

// boot is the time since the node started.
func (c *controller) boot() time.Duration { return time.Duration(c.clock.at(c.of.world.now)) }

func (c *controller) wall() limiter.Instant { return c.clock.micros(c.of.world.now) }

// now is what the clock shows by which it serves.
func (c *controller) now() limiter.Instant {
	return c.first.Add(limiter.Micros((int64(c.boot()) - c.at) / 1000))
}

// begin starts a process.
func (c *controller) begin() {
	c.of.identities++
	c.identity = c.of.identities
	c.past, c.observed, c.since, c.writing = leadership.Past{Overlap: micros(c.of.hold)}, 0, 0, false
	c.again(c.identity)
}

// again has a process try to lead, or renew, again and again.
func (c *controller) again(identity int) {
	if c.identity != identity {
		return
	}
	if !c.cut && !c.writing {
		c.try()
	}
	w := c.of.world
	w.events.add(c.clock.when(int64(c.boot()+c.of.retry)), func() { c.again(identity) })
}

// end ends the process. Messages that it sent may still arrive.
func (c *controller) end() { c.identity, c.renewal, c.store = 0, nil, nil }

// restart has a new process follow.
func (c *controller) restart(after time.Duration) {
	c.end()
	c.of.world.after(after, func() {
		if c.identity == 0 {
			c.begin()
		}
	})
}

// try looks at the Lease and, when it may, takes or renews it.
func (c *controller) try() {
	l, boot := c.of.lease, c.boot()
	if l.version != c.observed {
		c.observed, c.since = l.version, int64(boot)
	}
	own := l.holder == c.identity
	if !own && l.version > 0 {
		c.past = l.note.Past(micros(c.of.hold))
	}
	switch {
	case c.renewal != nil && (!own || !c.renewal.Holds(boot, c.of.hold)):
		c.restart(c.of.retry) // it lost the lock
		return
	case !own && l.note.Held && int64(boot)-c.since < int64(c.of.wait):
		return
	case l.version == 0:
		c.past = c.past.WithoutLease(micros(c.of.hold))
	}
	c.write(true)
}

// write sends a write of the Lease that takes, renews or releases it.
func (c *controller) write(held bool) {
	w, cs, identity := c.of.world, c.of, c.identity
	if held && c.renewal == nil {
		c.first, c.at = w.rules.start(c.wall(), c.past.Served), int64(c.boot())
	}
	r := leadership.Renewal{Sent: c.boot(), Clock: c.now()}
	sent := lease{holder: identity, note: leadership.Note{Clock: r.Clock, Wall: c.wall(), Held: held}}
	if !held {
		sent.holder = 0
	}
	c.writing = true
	replaces := cs.lease.version
	w.after(cs.delay(), func() {
		accepted := !c.cut && cs.lease.version == replaces
		if accepted {
			cs.writes++
			sent.version = cs.writes
			cs.lease = sent
		}
		w.after(cs.delay(), func() {
			if c.identity != identity {
				return
			}
			c.writing = false
			if accepted && !c.cut && held {
				c.renewed(r)
			}
		})
	})
}

// renewed notes that the process holds the lock, and begins a term with the first one.
func (c *controller) renewed(r leadership.Renewal) {
	c.renewal = &r
	if c.store == nil && r.Holds(c.boot(), c.of.hold) {
		c.lead()
	}
}

// lead begins a term with what the one before left.
func (c *controller) lead() {
	cs := c.of
	left := cs.left
	cs.terms++
	c.term, cs.left = cs.terms, nil
	o := memory.Options{Clock: c.now, Overlap: c.past.Overlap, First: c.term == 1 && c.past.Served == 0, Term: c.term}
	if left != nil {
		ledger, err := memory.Decode(left.ledger)
		if err != nil {
			panic(err)
		}
		if behind := max(left.stopped, ledger.Sealed()).Sub(c.now()); behind > 0 {
			c.first = c.first.Add(behind)
		}
		o.Ledger = ledger
	}
	c.store = memory.New(o)
	cs.world.trace.add(cs.world.now, stepFault, -3, int64(c.term))
}

// covers reports whether the instant may be served.
func (c *controller) covers(at limiter.Instant) bool {
	return c.renewal != nil && c.of.world.rules.covers(*c.renewal, at, c.boot(), c.of.hold)
}

// handOver ends a term in order: its ledger is left, and then the lock is released.
func (c *controller) handOver() {
	cs := c.of
	if c.store != nil && !c.cut {
		data, _, err := c.store.Export(1 << 20)
		if err != nil {
			panic(err)
		}
		if c.term == cs.terms {
			cs.left = &legacy{c.now(), data}
		}
	}
	if held := c.renewal != nil; held && cs.lease.holder == c.identity {
		c.renewal = nil
		c.write(false)
	}
	c.end()
}

func micros(d time.Duration) limiter.Micros { return limiter.Micros(d.Microseconds()) }

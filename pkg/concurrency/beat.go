package concurrency

import (
	"context"
	"errors"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/store"
)

// A beat is a command under way to the coordinator.
type beat struct {
	pool.Command
	params  pool.Params
	sent    int64  // instant before it was sent
	learned uint64 // samples that the guard had learned from
	starved bool   // a request had found no slot
}

// A link is what a guard knows of its coordinator.
type link struct {
	seq      int64 // of the last beat
	sent     int64 // instant of the last beat
	awaited  bool  // it was not answered yet
	heard    int64 // the latest beat whose outcome is known
	failures int   // beats in a row that failed
	cause    error // why the last that is known of failed, nil when it did not
	outage   bool  // because the coordinator could not be reached
	changed  bool  // the parameters did since the last beat

	learned uint64     // samples reported with the last answered beat
	grant   pool.Grant // the last that counted
	free    int64      // when more may be granted than is in use; past when it may

	beats int64
}

// fail notes that a beat brought no share.
func (l *link) fail(seq int64, err error) {
	if seq <= l.heard {
		return
	}
	l.heard, l.cause = seq, err
	l.failures++
	var unavailable *store.UnavailableError
	l.outage = errors.As(err, &unavailable)
}

// succeed notes that a beat brought a share.
func (l *link) succeed(seq int64) {
	if seq < l.heard {
		return // a later one is known to have failed
	}
	l.heard, l.cause, l.failures, l.outage = seq, nil, 0, false
}

// command returns the next command: one snapshot of what the guard enforces and has in
// flight.
func (g *Guard) command(op pool.Op, now int64) beat {
	g.link.seq++
	g.link.beats++
	g.bounded.Mark()
	b := beat{
		Command: pool.Command{
			Op: op, Holder: g.config.Holder, Seq: g.link.seq,
			Term: g.share.term, Applied: g.share.generation, Held: g.share.held(),
			InFlight: g.held(), Peak: g.bounded.Peak(),
		},
		params: g.config.Params, sent: now, learned: g.law.Learned(), starved: g.eager.starved,
	}
	if b.learned != g.link.learned {
		b.Limit = g.law.Limit()
	}
	return b
}

// send beats. A beat before that was not answered has timed out.
func (g *Guard) send(now int64) {
	key, interval := g.config.Key, g.config.Heartbeat.Interval
	late := &store.UnavailableError{Store: "coordinator of pool " + key.String(), Cause: context.DeadlineExceeded}
	if g.link.awaited {
		g.link.fail(g.link.seq, late)
	}
	b := g.command(pool.Beat, now)
	g.link.sent, g.link.awaited, g.link.changed, g.eager.starved = now, true, false, false
	g.work.Go(func() {
		ctx, cancel := context.WithTimeout(g.ctx, interval)
		defer cancel()
		grant, err := g.coordinator.Apply(ctx, key, b.params, b.Command)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = late // whatever the coordinator made of that
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.answer(b, grant, err)
	})
}

// answer notes what became of a beat.
func (g *Guard) answer(b beat, grant pool.Grant, err error) {
	now := g.clock.Now()
	g.fence(now)
	if b.Seq == g.link.seq {
		g.link.awaited = false
	}
	before, fresh := g.share.units, false
	if err == nil {
		fresh, err = g.share.take(b.sent, b.Command, grant)
	}
	switch {
	case err != nil:
		g.link.fail(b.Seq, err)
	case fresh:
		g.granted(b, before, grant, now)
	}
	g.pass(now)
	g.hurry(now)
}

// granted goes on with a share that was granted in the place of one of before units.
func (g *Guard) granted(b beat, before int64, grant pool.Grant, now int64) {
	g.link.succeed(b.Seq)
	g.eager.granted(b, before, g.link.grant.Holders, grant, g.config.Params)
	g.eager.starved = g.eager.starved || g.table.Waiting() > 0
	g.link.grant, g.link.free = grant, past
	if grant.Quarantined > 0 {
		g.link.free = now + int64(duration(grant.Quarantined))
	}
	if b.Seq == g.link.seq {
		g.bounded.Forget()
	}
	g.link.learned = max(g.link.learned, b.learned)
	if g.law.Learned() == g.link.learned && b.Limit == 0 {
		g.law.Adopt(grant.Limit, grant.Holders)
	} else {
		g.law.Follow(grant.Limit, grant.Holders)
	}
	g.worst.see(grant)
}

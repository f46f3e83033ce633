package escrow_test

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// clock shows the coordinator's time.
func (w *world) clock() limiter.Instant { return w.now.Add(w.offset) }

// serve hands any command to its escrow, and adds up what was taken.
func (w *world) serve() error {
	if len(w.toEscrow) == 0 {
		return nil
	}
	q := draw(w, &w.toEscrow)
	if !w.eternal {
		q.Since = q.since
	}
	before := q.state
	var r escrow.Result
	q.state, r = q.state.Step(w.now.Add(q.offset), q.Command)
	if q.Op < escrow.Fill && q.Op != escrow.Return && !w.one(16) {
		w.toProcess = append(w.toProcess, reply{q.region, q.Command, r})
	}
	w.note(q, before, r)
	switch {
	case q.Op == escrow.Take:
		w.taken[r.Epoch.Index] += r.Granted
	case q.Op == escrow.Return && !q.again:
		w.taken[q.Epoch.Index] -= r.Granted
	}
	return w.check(q, r)
}

// check holds an answer to what is promised of it.
func (w *world) check(q request, r escrow.Result) error {
	if q.Op != escrow.Take || r.Granted == 0 {
		return nil
	}
	if sum := w.taken[r.Epoch.Index]; sum > limit {
		return fmt.Errorf("%d were taken of window %d, of %d", sum, r.Epoch.Index, limit)
	}
	if end := w.hub.End(r.Epoch.Index); w.clock().Add(r.ExpiresIn) > end {
		return fmt.Errorf("units of a window that ends at %d are handed on for %d at %d", end, r.ExpiresIn, w.clock())
	}
	if began := w.hub.End(r.Epoch.Index - 1); w.clock() < began {
		return fmt.Errorf("units of a window that begins at %d are handed on at %d", began, w.clock())
	}
	return nil
}

// note counts that what the rules are about did happen.
func (w *world) note(q request, before escrow.State, r escrow.Result) {
	now := q.state
	for what, did := range map[string]bool{
		"units were taken":                r.Granted > 0 && q.Op == escrow.Take,
		"units were put back":             r.Granted > 0 && q.Op == escrow.Return,
		"a release took units off":        q.Op == escrow.Release && now.Granted < before.Granted,
		"an answer brought units":         q.Op == escrow.Fill && now.Granted > before.Granted,
		"an answer came after a release":  q.Op == escrow.Fill && q.Command.Holder == now.Holder && q.Grant.Seq <= now.Floor,
		"an answer was another escrow's":  q.Op == escrow.Fill && q.Command.Holder != now.Holder,
		"an answer was of an older epoch": q.Op == escrow.Fill && q.Grant.Epoch.Index < now.Epoch.Index,
		"the term changed in a window":    q.Op == escrow.Fill && now.Before > before.Before,
		"a slice opened a window":         now.Slice > 0 && now.Epoch.Index > before.Epoch.Index,
		"a window was not opened":         q.Op == escrow.Open && now.Epoch == before.Epoch,
	} {
		if did {
			w.happened[what]++
		}
	}
}

// receive lets a process of the region make something of any answer.
func (w *world) receive() {
	if len(w.toProcess) == 0 {
		return
	}
	p := draw(w, &w.toProcess)
	w.open(p)
	switch {
	case p.Op == escrow.Ask, p.Op == escrow.Release:
		w.command(p)
	case p.Op == escrow.Take && p.Granted > 0:
		p.held = append(p.held, held{p.Result.Epoch.Index, p.Granted})
	}
}

// command makes a command to the coordinator of what the escrow prepared.
func (w *world) command(p reply) {
	c := ledger.Command{
		Op: ledger.Lease, Member: p.name, Holder: p.Result.Holder, Seq: p.Seq, Epoch: p.From, Granted: p.Told, Slice: p.Result.Slice,
	}
	if p.Op == escrow.Release {
		c.Op = ledger.Release
	} else {
		c.Want = 1 + w.dice.Int64N(10)
		c.Min = 1 + w.dice.Int64N(min(c.Want, 2))
	}
	w.toHub = append(w.toHub, inquiry{p.region, c, p.Result, w.now, w.now.Add(limiter.Micros(w.dice.Int64N(500)))})
}

// ask hands any command to the coordinator, and maybe keeps it to come again.
func (w *world) ask() {
	if len(w.toHub) == 0 {
		return
	}
	i := w.any(len(w.toHub))
	q := w.toHub[i]
	if q.sent > w.now {
		return
	}
	if !w.one(8) {
		w.toHub = append(w.toHub[:i], w.toHub[i+1:]...)
	}
	w.fromHub = append(w.fromHub, answer{q, w.hub.Apply(w.clock(), q.Command)})
}

// fill brings any answer of the coordinator to the escrow, and maybe again.
func (w *world) fill() {
	if len(w.fromHub) == 0 {
		return
	}
	i := w.any(len(w.fromHub))
	a := w.fromHub[i]
	if !w.one(8) {
		w.fromHub = append(w.fromHub[:i], w.fromHub[i+1:]...)
	}
	c := escrow.Command{
		Op: escrow.Fill, Holder: a.asked.Holder, Grant: a.Grant, At: a.asked.Now, ExpiresIn: a.sent.Sub(a.received) + a.Grant.ExpiresIn,
	}
	if w.slow {
		c.At = w.now.Add(a.offset)
	}
	if w.mixed {
		c.Holder = a.state.Holder
	}
	w.send(a.region, c)
	if h := a.heard; h == nil || h.grant.Now <= a.Now {
		a.heard = &heard{a.Grant, a.sent, w.now}
	}
}

// open lets a process open the window after those it knows of, once it has begun for
// sure.
func (w *world) open(p reply) {
	h := p.heard
	if h == nil || p.Result.Epoch != (ledger.Epoch{}) {
		return
	}
	// The window that it heard of ended between these.
	earliest, latest := h.sent.Add(h.grant.ExpiresIn), h.received.Add(h.grant.ExpiresIn)
	if w.now < latest {
		return
	}
	later := w.now.Sub(latest) / window
	earliest = earliest.Add(later * window)
	if w.now >= earliest.Add(window) {
		return
	}
	if w.eager {
		p.state.Next = h.grant.Slice
	}
	w.send(p.region, escrow.Command{
		Op: escrow.Open, Epoch: ledger.Epoch{Index: h.grant.Epoch.Index + 1 + int64(later)}, Slice: h.grant.Slice,
		At: p.Now, ExpiresIn: earliest.Add(window).Sub(w.now), Age: w.now.Sub(earliest),
	})
}

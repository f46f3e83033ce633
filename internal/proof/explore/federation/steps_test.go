package federation_test

import (
	"fmt"
	"iter"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// next yields all that can happen. That a message is lost is that it never arrives.
func (c *system) next(w world) iter.Seq2[string, world] {
	return func(yield func(string, world) bool) {
		for _, steps := range []iter.Seq2[string, world]{c.passes(w), c.works(w), c.arrives(w)} {
			for what, next := range steps {
				if !yield(what, next) {
					return
				}
			}
		}
	}
}

// passes yields what happens to the coordinator and to all.
func (c *system) passes(w world) iter.Seq2[string, world] {
	return func(yield func(string, world) bool) {
		if w.now+1 < c.windows*c.ticks {
			next := w.clone()
			next.now++
			if !yield("time passes", next) {
				return
			}
		}
		if w.edits+1 < len(c.params) {
			next := w.clone()
			next.edits++
			if !yield("the budget is edited", next) {
				return
			}
		}
		if w.crashes < c.crashes {
			yield("the memory is lost", c.crash(w))
		}
	}
}

func (c *system) crash(w world) world {
	next := w.clone()
	next.crashes++
	last := w.memories[len(w.memories)-1]
	fresh := coordinator{knows: ledger.Memory{Term: last.knows.Term + 1}}
	if c.keeps {
		fresh.state = w.record
		c.rules.lost(&fresh.state)
		next.version++ // it writes its term first
		fresh.version = next.version
		next.memories = append(next.memories, fresh)
		return next
	}
	fresh.knows.Since = c.rules.since(c.instant(w.now) + 1)
	next.memories = []coordinator{fresh}
	return next
}

// works yields what regions do.
func (c *system) works(w world) iter.Seq2[string, world] {
	return func(yield func(string, world) bool) {
		for n := range w.regions {
			for what, next := range c.regionWorks(w, n) {
				if !yield(name(n)+" "+what, next) {
					return
				}
			}
		}
	}
}

func (c *system) regionWorks(w world, n int) iter.Seq2[string, world] {
	return func(yield func(string, world) bool) {
		sends := c.sends
		if n > 0 && c.others > 0 {
			sends = c.others
		}
		if w.regions[n].sent < sends {
			if !yield("asks", c.send(w, n, escrow.Command{Op: escrow.Ask, Holder: name(n)})) {
				return
			}
			if c.release && w.regions[n].escrow.Granted > 0 && !yield("gives back", c.send(w, n, escrow.Command{Op: escrow.Release, Holder: name(n)})) {
				return
			}
		}
		if next, ok := c.open(w, n); ok && !yield("opens its slice", next) {
			return
		}
		if next, ok := c.spend(w, n); ok && !yield("admits", next) {
			return
		}
		if c.hands && w.regions[n].hand == 0 {
			next := w.clone()
			r := &next.regions[n]
			var got escrow.Result
			r.escrow, got = r.escrow.Step(c.local(w.now, n), escrow.Command{Op: escrow.Take, Min: 1, Want: c.batch})
			r.hand, r.until = got.Granted, w.now+int64(got.ExpiresIn)/int64(c.tick())
			if r.hand > 0 {
				yield("hands units to a process", next)
			}
		}
	}
}

// send numbers a command and puts it on its way.
func (c *system) send(w world, n int, prepare escrow.Command) world {
	next := w.clone()
	r := &next.regions[n]
	r.sent++
	before := r.escrow
	var p escrow.Result
	r.escrow, p = r.escrow.Step(c.local(w.now, n), prepare)
	command := ledger.Command{
		Op: ledger.Lease, Member: name(n), Holder: p.Holder, Seq: p.Seq, Epoch: p.From, Granted: p.Told, Min: 1, Want: c.batch, Slice: p.Slice,
	}
	if prepare.Op == escrow.Release {
		command.Op, command.Min, command.Want = ledger.Release, 0, 0
		c.rules.given(&before, &r.escrow)
	}
	next.mail = append(next.mail, letter{region: n, asked: p.Now, sent: w.now, command: command})
	return next
}

// spend admits a unit: from what a process has in hand, or from the escrow at once.
func (c *system) spend(w world, n int) (world, bool) {
	next := w.clone()
	r := &next.regions[n]
	if c.hands {
		if r.hand == 0 || !c.rules.alive(r.until, w.now) {
			return w, false
		}
		r.hand--
	} else {
		var got escrow.Result
		r.escrow, got = r.escrow.Step(c.local(w.now, n), escrow.Command{Op: escrow.Take, Min: 1, Want: 1})
		if got.Granted == 0 {
			return w, false
		}
	}
	next.admitted[w.now/c.ticks]++
	return next, true
}

// open begins a window with the region's slice.
func (c *system) open(w world, n int) (world, bool) {
	r := w.regions[n]
	if !c.params[0].Slices || r.escrow.Next == 0 {
		return w, false
	}
	window := w.now / c.ticks
	next := w.clone()
	o := &next.regions[n]
	now := c.local(w.now, n)
	o.escrow, _ = o.escrow.Step(now, escrow.Command{
		Op: escrow.Open, Epoch: ledger.Epoch{Index: window + 10}, Slice: r.escrow.Next, At: now,
		ExpiresIn: c.instant((window + 1) * c.ticks).Sub(c.instant(w.now)), Age: c.instant(w.now).Sub(c.instant(window * c.ticks)),
		Since: 1,
	})
	return next, o.escrow.Epoch.Index != r.escrow.Epoch.Index
}

// arrives yields the arrival of each message, at each memory that believes to serve.
func (c *system) arrives(w world) iter.Seq2[string, world] {
	return func(yield func(string, world) bool) {
		for i, l := range w.mail {
			for again := range 2 {
				if again == 1 && w.repeats >= c.repeats {
					continue
				}
				next := w.clone()
				if again == 1 {
					next.repeats++
				} else {
					next.mail = slices.Delete(next.mail, i, i+1)
				}
				if l.answer {
					if !yield(fmt.Sprintf("%s hears %d", name(l.region), l.command.Seq), c.hear(next, l)) {
						return
					}
					continue
				}
				for m := range w.memories {
					if !yield(fmt.Sprintf("memory %d serves %d of %s", m+1, l.command.Seq, name(l.region)), c.serve(next.clone(), m, l)) {
						return
					}
				}
			}
		}
	}
}

// hear brings an answer to its escrow.
func (c *system) hear(w world, l letter) world {
	r := &w.regions[l.region]
	fill := escrow.Command{Op: escrow.Fill, Holder: l.command.Holder, Grant: l.grant, At: l.asked, ExpiresIn: l.grant.ExpiresIn}
	now := c.local(w.now, l.region)
	c.rules.fill(&r.escrow, &fill, now)
	r.escrow, _ = r.escrow.Step(now, fill)
	return w
}

// serve applies a command and writes down what has to be. An answer that may not
// leave is lost.
func (c *system) serve(w world, m int, l letter) world {
	o := &w.memories[m]
	command := l.command
	command.Memory = o.knows
	p, now := c.params[w.edits], c.instant(w.now)
	for {
		next, g := c.rules.step(o.state, p, now, command)
		if g.Reason == ledger.Unreserved {
			reserve := ledger.Command{Op: ledger.Reserve, Epoch: g.Epoch, Granted: g.Reserve, Memory: o.knows}
			if next, _ = c.rules.step(o.state, p, now, reserve); !c.write(&w, o, next) {
				return w
			}
			o.state = next
			continue
		}
		if c.keeps && larger(o.state, next) && !c.write(&w, o, next) {
			return w
		}
		o.state = next
		w.mail = append(w.mail, letter{region: l.region, asked: l.asked, sent: l.sent, command: l.command, grant: g, answer: true})
		return w
	}
}

// larger reports whether a member was sent a slice that is not written down.
func larger(before, after ledger.State) bool {
	for _, s := range after.Standings {
		if was, _ := before.StandingOf(s.Member); s.Next > max(was.Slice, was.Next) {
			return true
		}
	}
	return false
}

// write is the compare-and-swap of the record.
func (c *system) write(w *world, o *coordinator, s ledger.State) bool {
	if o.version != w.version && !c.rules.old {
		return false
	}
	w.version++
	o.version = w.version
	w.record = ledger.State{Window: s.Window, Index: s.Index, Term: s.Term, Limit: s.Limit, Reserved: s.Reserved}
	for _, t := range s.Standings {
		if most := max(t.Slice, t.Next); most > 0 {
			w.record.Standings = append(w.record.Standings, ledger.Standing{Member: t.Member, Slice: most, Next: most})
		}
	}
	return true
}

package explore_test

import (
	"encoding/binary"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// encode appends what distinguishes worlds. Instants count from the present, so that
// worlds are alike which differ only by when they are; and instants are alike that
// have been past for longer than anything looks back.
func (f *fleet) encode(b []byte, w world) []byte {
	now := f.now(&w)
	e := encoder{b: b, now: now, oldest: f.oldest}
	e.add(w.behind, w.unlucky, int64(w.move), int64(now)%int64(f.cycle()))
	if w.move == moved {
		e.instant(w.since)
	}
	for _, s := range w.stores {
		e.state(s.state, f.clocksStep())
		e.instant(s.memory.Since)
		e.instant(s.memory.Latest)
	}
	e.b = w.audit.encode(e.b)
	parts := make([][]byte, f.holders)
	for n, h := range w.holders {
		part := encoder{now: now, oldest: f.oldest, mono: f.mono(&w, n), refunds: f.cancels, byArrival: f.rules.byArrival}
		part.holder(h)
		if f.floors {
			part.clock(h, f.tick)
		}
		if leased := h.window == f.policies[0].Rates[0].WindowAt(now).Index; leased && f.tenants != nil {
			part.add(h.got)
		} else if f.guided {
			part.add(boolean(leased))
		}
		parts[n] = part.b
	}
	if f.alike {
		slices.SortFunc(parts, slices.Compare)
	}
	for _, p := range parts {
		e.b = append(e.b, p...)
	}
	return e.b
}

// cycle is a length that every window divides.
func (f *fleet) cycle() limiter.Micros {
	cycle := f.tick
	for _, p := range f.policies {
		for _, r := range p.Rates {
			cycle = leastMultiple(cycle, r.Window)
		}
	}
	return cycle
}

func leastMultiple(a, b limiter.Micros) limiter.Micros {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// horizon is how far anything looks back: the longest window or the time a full
// bucket takes to drain, and the lifetime of what was granted.
func (f *fleet) horizon() limiter.Micros {
	var longest limiter.Micros
	for _, p := range f.policies {
		for _, r := range p.Rates {
			back := r.Window + p.Lifetime
			if !p.Algorithm.WindowCoupled() {
				back += r.Window * limiter.Micros(max(r.Burst, r.Limit)) / limiter.Micros(r.Limit)
			}
			longest = max(longest, back)
		}
	}
	return longest + limiter.Micros(f.stepBack+f.jumps+1)*f.tick
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

type encoder struct {
	b      []byte
	now    limiter.Instant
	oldest limiter.Micros

	mono      int64 // the holder's clock
	refunds   bool  // credits may join what is spent
	byArrival bool  // lives of grants count from when they arrive
}

func (e *encoder) add(list ...int64) {
	for _, v := range list {
		e.b = binary.AppendVarint(e.b, v)
	}
}

// instant adds an instant of the store's clock.
func (e *encoder) instant(t limiter.Instant) { e.add(max(int64(t.Sub(e.now)), -int64(e.oldest))) }

// local adds an instant of the holder's clock.
func (e *encoder) local(t int64) { e.add(max(t-e.mono, -1000*int64(e.oldest))) }

// state adds what a store knows of the key. Windows that are over count for nothing,
// unless the clock may get back into them.
func (e *encoder) state(s limiter.State, reopens bool) {
	e.add(int64(s.N))
	if s.N == 0 {
		return
	}
	e.add(s.Generation, int64(s.Algorithm), s.Asked, s.Before, int64(len(s.Tenants)))
	e.instant(s.Expires)
	e.instant(s.Began)
	for _, t := range s.Tenants {
		e.b = append(e.b, t.Tenant...)
		e.add(t.Used)
	}
	for _, m := range s.Slice() {
		e.add(int64(m.Window))
		start := limiter.Instant(m.Index)
		if s.Algorithm.WindowCoupled() {
			w := limiter.OpenWindow{Rate: m.Rate, Index: m.Index}
			if start = w.Start(); e.now >= w.End() && !reopens {
				e.instant(w.End().Add(-e.oldest))
				continue
			}
		}
		e.instant(start)
		e.add(m.Limit, m.Burst, m.Used, int64(len(m.Log)))
		for _, x := range m.Log {
			e.instant(x.At)
			e.add(x.Count)
		}
	}
}

func (e *encoder) holder(h holder) {
	e.add(int64(h.policy), int64(h.move))
	e.holding(h.hand.Front)
	e.holding(h.hand.Back)
	e.call(h.call)
	e.call(h.back)
	e.call(h.stray)
	if h.last != nil {
		e.add(h.last.cost)
		e.charge(h.last.charge)
	}
}

// clock adds what a holder knows of the store's clock, which shows multiples of a tick, and
// of its memories. By how much less than a tick the floor lags is left out: a holder that is
// idle looks at the store before that adds up to one.
func (e *encoder) clock(h holder, tick limiter.Micros) {
	floor, later := h.clock.At(e.mono), h.clock.At(e.mono+1000*int64(tick))
	e.add(max(e.ticks(floor, tick), 0), boolean(later > floor), e.ticks(h.clock.Behind(), tick))
	e.recollection(h.known, tick)
}

func (e *encoder) recollection(r store.Recollection, tick limiter.Micros) {
	e.instant(r.Since)
	e.add(e.ticks(r.Shown, tick), e.ticks(r.Doubtful, tick))
}

// ticks returns how many ticks from now an instant is that is compared with multiples of a
// tick only.
func (e *encoder) ticks(t limiter.Instant, tick limiter.Micros) int64 {
	from := int64(max(t.Sub(e.now), -e.oldest))
	if from > 0 {
		from += int64(tick) - 1
	}
	return from / int64(tick)
}

// holding adds what credits are and when they die. For dead ones it adds only how many there
// are: what they were charged to is over.
func (e *encoder) holding(h account.Grant) {
	e.add(h.Credits, min(h.Carried, h.Credits))
	switch {
	case e.mono >= h.Deadline:
	case h.Credits > 0 || e.refunds:
		e.local(h.Deadline)
		e.charge(h.Charge)
	}
}

func (e *encoder) charge(c account.Charge) {
	e.windows(c.Windows)
	if c.ByTime {
		e.instant(c.At)
	}
}

func (e *encoder) windows(w limiter.Windows) {
	e.add(int64(w.N))
	for _, v := range w.Slice() {
		e.add(int64(v.Window), v.Limit)
		e.instant(v.Start())
	}
}

func (e *encoder) call(c *call) {
	if c == nil {
		e.add(0)
		return
	}
	e.add(1, int64(c.store), int64(c.policy), int64(c.command.Op), c.command.Min, c.command.Want)
	e.windows(c.command.Windows)
	e.instant(c.command.At)
	e.add(boolean(c.command.First))
	if c.reply == nil {
		e.local(c.sent)
		return
	}
	e.add(c.reply.Granted)
	if e.byArrival {
		e.add(int64(c.reply.ExpiresIn))
	}
	e.holding(account.GrantOf(c.sent, *c.reply))
}

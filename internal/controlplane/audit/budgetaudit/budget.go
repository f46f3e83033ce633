package budgetaudit

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Totals count since the controller's process started.
type Totals struct {
	Leases int64 // commands that asked the coordinator for units
	Units  int64 // that it granted
}

// reportsDue is how long the reports of a window may take after its end: sidecars report
// to their controller, and that one to the coordinator, which may be far away.
const reportsDue = 10 * limiter.Second

// A Budget audits one budget that several clusters share, by what their controllers
// reported of windows that are over. If all members together admitted A and refused R in a
// window with limit L, then Δ = max(0, A − L) and U = max(0, min(A + R, L) − A) / L.
//
// A window is measured when every member that took part in it, by a grant, a slice or a
// report, has reported all that its sidecars counted. A coordinator remembers few
// windows that are over, so a Budget has to be shown its ledger often; a window that it
// never saw is not measured.
//
// It belongs to one caller at a time.
type Budget struct {
	generation int64
	traffic    bool // some member reported a request
	meter      meter.Meter
	totals     Totals // as reported last

	// From the ledger that was shown last.
	window limiter.Micros
	open   int64 // index of its open window

	// Of this generation.
	from     int64            // index of the first window
	windows  map[int64]review // of the windows that the ledger remembered last
	due      int64            // index of the newest window that should be measured
	silent   []string         // what it lacks
	last     *ledger.Closed   // the newest window that was measured
	over     Overshoot
	unused   audit.UnderUtilization
	exceeded bool // a window admitted more than its limit and more than was granted of it
}

// A review is how far a window that is over is measured.
type review struct {
	measured bool
	silent   []string // members that have not reported all of it
}

// New returns the audit of a budget that nothing is known of, under a generation of the
// object that names it.
func New(generation int64) *Budget {
	return &Budget{generation: generation}
}

// Reconfigure switches to another generation, with windows that begin later. It forgets what
// was measured under the one before.
func (b *Budget) Reconfigure(generation int64) {
	if generation == b.generation {
		return
	}
	b.generation = generation
	b.restart()
	if b.window > 0 {
		b.from = b.open + 1
	}
}

func (b *Budget) restart() {
	b.from, b.windows, b.due, b.silent, b.last = 0, nil, 0, nil, nil
	b.over, b.unused, b.exceeded = Overshoot{}, audit.UnderUtilization{}, false
}

// Enter takes over what the ledger remembers of windows that are over. Now is the
// instant on the coordinator's clock at which it was read.
func (b *Budget) Enter(s ledger.State, now limiter.Instant) {
	b.takeOver(&s, now, func(i int) review { return b.review(&s.Closed[i], highest(&s)) })
}

// takeOver takes over windows of the ledger as look reviews them.
func (b *Budget) takeOver(s *ledger.State, now limiter.Instant, look func(closed int) review) {
	if s.Window != b.window {
		b.restart() // windows of another length have other numbers
	}
	b.window, b.open = s.Window, s.Index
	windows := make(map[int64]review, len(s.Closed))
	for i, c := range s.Closed {
		if c.Index < b.from {
			continue
		}
		r := look(i)
		windows[c.Index] = r
		if r.measured || end(s.Window, c.Index)+limiter.Instant(reportsDue) <= now {
			b.settle(c.Index, r)
		}
	}
	for index, r := range b.windows {
		if _, remembered := windows[index]; !remembered {
			b.settle(index, r) // as it was last: nothing more will be known of it
		}
	}
	b.windows = windows
}

// settle notes how a window ended that is measured, or should be by now.
func (b *Budget) settle(index int64, r review) {
	if index >= b.due {
		b.due, b.silent = index, r.silent
	}
}

// review looks at what is reported of one window. No window of the ledger had a limit
// above highest.
func (b *Budget) review(c *ledger.Closed, highest int64) review {
	var r review
	var admitted, refused int64
	for _, u := range c.Usage {
		admitted, refused = admitted+u.Admitted, refused+u.Refused
		if took, reported := u.Granted > 0 || u.Reported, u.Reported && u.Complete; took && !reported {
			r.silent = append(r.silent, u.Member)
		}
	}
	b.traffic = b.traffic || admitted > 0 || refused > 0
	over, bound := max(0, admitted-c.Limit), max(0, min(c.Granted, highest)-c.Limit)
	b.exceeded = b.exceeded || over > 0 && admitted > c.Granted // however much is missing
	r.measured = len(r.silent) == 0
	unused := max(0, min(admitted+refused, c.Limit)-admitted) * audit.BasisPoints / max(1, c.Limit)
	b.note(c, r, over, bound, int32(unused))
	return r
}

// note keeps the figures of a window, which are the least they can be unless it is measured.
func (b *Budget) note(c *ledger.Closed, r review, over, bound int64, unused int32) {
	at := time.UnixMicro(int64(end(b.window, c.Index)))
	if over > b.over.Worst {
		b.over.Worst, b.over.WorstEnd, b.over.WorstBound = over, at, bound
	}
	if !r.measured {
		return
	}
	b.unused.Worst = max(b.unused.Worst, unused)
	if b.last == nil || c.Index >= b.last.Index {
		b.last = c
		b.over.WindowEnd, b.over.Observed, b.over.Bound = at, over, bound
		b.unused.Observed = unused
	}
}

// highest returns the largest limit of the windows that are remembered: while one is
// lowered, more may be granted of a window than its limit is in the end.
func highest(s *ledger.State) int64 {
	most := s.Limit
	for _, c := range s.Closed {
		most = max(most, c.Limit)
	}
	return most
}

// end returns when a window ends.
func end(window limiter.Micros, index int64) limiter.Instant {
	return limiter.Instant((index + 1) * int64(window))
}

// Leased enters what this cluster's controller asked of the coordinator so far.
func (b *Budget) Leased(t Totals, now time.Time) {
	b.meter.Add(meter.Counts{
		Admitted:   max(0, t.Units-b.totals.Units),
		RoundTrips: max(0, t.Leases-b.totals.Leases),
	}, now)
	b.totals = t
}

package failuremodes_test

import (
	"context"
	"sync"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	escrowmemory "github.com/weir-dev/weir/pkg/federation/escrow/memory"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Faults inside of a region.

// crashed kills a region's controller in the middle of a window. The next one starts soon.
func crashed(w *world) measured {
	w.pass(w.length() / 3)
	from, index := w.at(), w.index()
	w.regions[0].kill(0)
	w.pass(w.length() / 10)
	w.regions[0].start(0)
	to := w.at()
	w.nextWindow()
	w.nextWindow()
	return measured{"others": w.others(0, from, to), "forfeited": w.forfeited(index), "after": w.forfeited(index + 1)}
}

// crashedSharing kills one of the controllers of a region that share what it was granted.
func crashedSharing(w *world) measured {
	w.pass(w.length() / 3)
	index := w.index()
	holders := w.holders(0)
	w.regions[0].kill(0)
	w.pass(w.length() / 10)
	w.regions[0].start(0)
	w.nextWindow()
	w.nextWindow()
	return measured{"holders": holders, "forfeited": w.forfeited(index), "after": w.forfeited(index + 1)}
}

// sharing has several controllers in each region, and nothing happens to them.
func sharing(w *world) measured {
	index := w.index()
	w.pass(w.length() / 2)
	holders := w.holders(0)
	for range 10 {
		w.nextWindow()
	}
	worst := 0.0
	for i := range int64(10) {
		worst = max(worst, w.forfeited(index+i))
	}
	return measured{"holders": holders, "unused": worst}
}

// holders returns how many holders the coordinator knows of a region.
func (w *world) holders(region int) float64 {
	s, err := w.hub.Observe(w.t.Context(), id)
	if err != nil {
		w.t.Error(err)
	}
	n := 0
	for _, a := range s.Accounts {
		if a.Member == w.params.Members[region].Name {
			n++
		}
	}
	return float64(n)
}

// escrowAway takes the shared escrow of a region away.
func escrowAway(w *world) measured {
	w.pass(w.length() / 3)
	d := w.regions[0].escrow.(*desk)
	from := w.at()
	d.set(func(d *desk) { d.away = true })
	w.pass(w.length())
	holders := w.holders(0)
	w.pass(10 * w.length())
	d.set(func(d *desk) { d.away = false })
	to := w.at()
	w.pass(15 * w.length())
	after := w.holders(0)
	return measured{"served": w.served(0, from, to), "holders": holders, "healed": w.healed(0, to), "one": after}
}

// suspended lets the machine of a region's controller sleep: its clock moves on at once,
// and what it has is of a window that is over.
func suspended(w *world) measured {
	w.pass(w.length() / 3)
	w.hub.set(10 * w.length())
	w.regions[0].skip(10 * w.params.Window)
	from := w.at()
	index := w.index()
	w.regions[0].line.set(func(l *line) { l.cut = true })
	w.pass(w.length() / 10)
	old := w.served(0, from, w.at())
	w.regions[0].line.set(func(l *line) { l.cut = false })
	to := w.at()
	w.pass(15 * w.length())
	if w.of(index+2) == 0 {
		w.t.Error("a later window was not served")
	}
	return measured{"old": old, "healed": w.healed(0, to)}
}

// askAs has a tenant of a region ask for units, one at a time. Two tenants are declared.
func (w *world) askAs(region int, tenant string, times int64) (units int64) {
	limits := w.limits
	limits.Fairness = limiter.Fairness{Weights: []limiter.Weight{{Tenant: "loud", Weight: 1}, {Tenant: "quiet", Weight: 1}}, Default: 1}
	for range times {
		res, err := w.regions[region].get(0).Apply(w.t.Context(), key, limits, limiter.Command{Op: limiter.Take, Min: 1, Want: 1, Tenant: tenant})
		if err != nil {
			w.t.Error(err)
		}
		w.note(ask{at: w.at(), wanted: 1, gotten: res.Granted, index: res.Windows.Open[0].Index})
		units += res.Granted
	}
	return units
}

// flooded has one tenant ask for everything before another asks for anything, in the same
// region or in another.
func flooded(region int) func(w *world) measured {
	return func(w *world) measured {
		w.nextWindow()
		w.askAs(0, "quiet", 1)
		w.nextWindow()
		from := w.index()
		loud := w.askAs(region, "loud", 2*w.params.Limit)
		quiet := w.askAs(0, "quiet", w.params.Limit)
		if w.index() != from {
			w.t.Errorf("the flood lasted for more than a window")
		}
		total := float64(w.params.Limit)
		return measured{"loud": 100 * float64(loud) / total, "quiet": 100 * float64(quiet) / total}
	}
}

// idled has one tenant ask for everything after another was idle for a window.
func idled(w *world) measured {
	w.nextWindow()
	w.askAs(0, "quiet", 1)
	w.nextWindow()
	w.nextWindow()
	return measured{"loud": 100 * float64(w.askAs(1, "loud", 2*w.params.Limit)) / float64(w.params.Limit)}
}

// A desk is an escrow that a region's controllers share, and that can be away.
type desk struct {
	to *escrowmemory.Escrow

	mu   sync.Mutex
	away bool // guarded by mu
}

func newDesk(*world) federation.Escrow {
	return &desk{to: escrowmemory.New(escrowmemory.Options{})}
}

func (d *desk) set(f func(d *desk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

// Apply implements federation.Escrow.
func (d *desk) Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error) {
	d.mu.Lock()
	away := d.away
	d.mu.Unlock()
	if away {
		return escrow.Result{}, lost(context.DeadlineExceeded)
	}
	return d.to.Apply(ctx, id, c)
}

var processRows = []row{
	{
		id:      "region-killed",
		fault:   "A region's controller is killed in the middle of a window, and the next one starts soon after",
		does:    "The others serve {others} of what they are asked for",
		lost:    "What the controller held in memory: {forfeited} of the window's limit",
		heals:   "The next one is a holder of its own. In the next window {after} of the limit are not used",
		setup:   setup{load: press, mortal: true},
		figures: figures{"others": atLeast(95, "%"), "forfeited": atMost(10, "%"), "after": atMost(2, "%")},
		prove:   crashed,
	},
	{
		id:      "region-killed-sharing",
		fault:   "One of the controllers of a region that share its escrow is killed",
		does:    "The others of the region go on with what is there. To the coordinator all are {holders}",
		lost:    "{forfeited} of the window's limit",
		heals:   "Nothing has to: of the next window {after} of the limit are not used",
		setup:   setup{load: press, processes: 3, escrow: newDesk, mortal: true},
		figures: figures{"holders": exactly(1, "holders"), "forfeited": atMost(2, "%"), "after": atMost(2, "%")},
		prove:   crashedSharing,
	},
	{
		id:      "region-shares",
		fault:   "Several controllers of each region share its escrow, and nothing happens to them",
		does:    "What all of them have in hand is what the region was granted: {holders} to the coordinator, however many they are",
		lost:    "Of no window more than {unused} of the limit",
		heals:   "Nothing has to",
		setup:   setup{load: press, processes: 4, escrow: newDesk},
		figures: figures{"holders": exactly(1, "holders"), "unused": atMost(2, "%")},
		prove:   sharing,
	},
	{
		id:      "escrow-away",
		fault:   "The shared escrow of a region is away for 11 windows, and the coordinator is not",
		does:    "Each of its controllers leases for itself: the region is {holders} instead of one. It serves {served}",
		lost:    "What the escrow held dies with its window",
		heals:   "{healed} after it is back; then the region is {one} again",
		setup:   setup{processes: 3, escrow: newDesk},
		figures: figures{"holders": exactly(3, "holders"), "served": atLeast(95, "%"), "healed": atMost(3, "s"), "one": exactly(1, "holders")},
		prove:   escrowAway,
	},
	{
		id:      "region-suspended",
		fault:   "The machine of a region's controller sleeps for 10 windows, and finds no coordinator when it wakes up",
		does:    "It serves {old} of what it held before",
		lost:    "What it held",
		heals:   "{healed} after the coordinator answers",
		setup:   setup{regions: 1, steps: true},
		figures: figures{"old": exactly(0, "%"), "healed": atMost(9, "s")},
		prove:   suspended,
	},
	{
		id:      "tenant-floods",
		fault:   "One of two tenants of equal weight asks for everything before the other asks for anything",
		does:    "It gets {loud} of the window's limit",
		lost:    "Nothing of the other's part: {quiet}",
		heals:   "Nothing has to",
		setup:   setup{regions: 1, windows: 20, load: idle},
		figures: figures{"loud": atMost(51, "%"), "quiet": atLeast(49, "%")},
		prove:   flooded(0),
	},
	{
		id:      "tenant-floods-elsewhere",
		fault:   "The same, and the other tenant asks in another region",
		does:    "It gets {loud} of the window's limit",
		lost:    "Nothing of the other's part: {quiet}",
		heals:   "Nothing has to",
		setup:   setup{regions: 2, windows: 20, load: idle},
		figures: figures{"loud": atMost(51, "%"), "quiet": atLeast(49, "%")},
		prove:   flooded(1),
	},
	{
		id:      "tenant-idle",
		fault:   "One of two tenants of equal weight asks for nothing in a whole window, in no region",
		does:    "From the next window on the other gets {loud} of the limit",
		lost:    "Nothing",
		heals:   "The part of the first is kept for it again from its first request on, as far as it is left, and all of it in the next window",
		setup:   setup{regions: 2, windows: 20, load: idle},
		figures: figures{"loud": atLeast(95, "%")},
		prove:   idled,
	},
}

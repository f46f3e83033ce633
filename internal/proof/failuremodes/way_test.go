package failuremodes_test

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation"
)

// Faults on the way between a region and the coordinator.

func cutOff(w *world) measured {
	w.pass(w.length() / 3)
	from := w.at()
	w.regions[0].line.set(func(l *line) { l.cut = true })
	w.pass(20 * w.length())
	w.regions[0].line.set(func(l *line) { l.cut = false })
	to := w.at()
	w.pass(15 * w.length())
	return measured{"served": w.served(0, from, to), "others": w.others(0, from, w.at()), "healed": w.healed(0, to)}
}

// cutOffAhead cuts a region off in the middle of a window until the next is half over.
func cutOffAhead(w *world) measured {
	w.pass(2*w.length() + w.length()/2)
	from := w.at()
	w.regions[0].line.set(func(l *line) { l.cut = true })
	w.nextWindow()
	ended := w.at()
	w.pass(w.length() / 2)
	w.regions[0].line.set(func(l *line) { l.cut = false })
	to := w.at()
	w.pass(4 * w.length())
	return measured{"rest": w.served(0, from, ended), "next": w.served(0, ended, to), "healed": w.healed(0, to)}
}

// cutOffSlices cuts a region off that goes on with its slice.
func cutOffSlices(w *world) measured {
	w.nextWindow()
	from, first := w.at(), w.index()
	w.regions[0].line.set(func(l *line) { l.cut = true })
	w.pass(30 * w.length())
	last := w.index()
	w.regions[0].line.set(func(l *line) { l.cut = false })
	to := w.at()
	w.pass(15 * w.length())
	least, most := w.perWindow(0, first+1, last-1)
	if least != most {
		w.t.Errorf("windows served %d to %d", least, most)
	}
	return measured{"slice": float64(least), "others": w.others(0, from, w.at()), "healed": w.healed(0, to)}
}

// mute loses answers and no command.
func mute(w *world) measured {
	w.pass(w.length() / 3)
	from := w.at()
	w.regions[0].line.set(func(l *line) { l.mute = true })
	w.pass(w.length() / 2)
	vain := w.vain(0)
	if vain == 0 {
		w.t.Error("nothing was granted in vain")
	}
	w.pass(20 * w.length())
	if later := w.vain(0); later > 0 {
		w.t.Errorf("%g %% of a later window were granted in vain", later)
	}
	w.regions[0].line.set(func(l *line) { l.mute = false })
	to := w.at()
	w.pass(15 * w.length())
	return measured{
		"served": w.served(0, from, to), "vain": vain,
		"others": w.others(0, from, w.at()), "healed": w.healed(0, to),
	}
}

// vain returns what of the open window was granted to a region that it did not hand on,
// in percent of the limit.
func (w *world) vain(region int) float64 {
	s, err := w.hub.Observe(w.t.Context(), id)
	if err != nil {
		w.t.Error(err)
	}
	units := s.GrantedTo(w.params, w.params.Members[region].Name)
	used, _ := w.perWindow(region, s.Index, s.Index)
	return 100 * float64(units-used) / float64(w.params.Limit)
}

// slow has answers come when their window is over.
func slow(w *world) measured {
	w.pass(w.length() / 3)
	from := w.at()
	l := w.regions[0].line
	l.delay(func() time.Duration { return w.length() + w.length()/4 })
	w.pass(20 * w.length())
	l.delay(func() time.Duration { return way })
	to := w.at()
	w.pass(15 * w.length())
	return measured{"served": w.served(0, from, to), "others": w.others(0, from, w.at()), "healed": w.healed(0, to)}
}

// disorder repeats every command, and delays each copy and each answer by something else,
// so that they arrive in any order and often after they were given up.
func disorder(w *world) measured {
	var mu sync.Mutex
	seed := rand.Uint64()
	w.t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	delay := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(dice.Int64N(int64(w.setup.timeout)))
	}
	from := w.at()
	for _, r := range w.regions {
		r.line.delay(delay)
		r.line.set(func(l *line) { l.twice = true })
	}
	w.pass(30 * w.length())
	for _, r := range w.regions {
		r.line.delay(func() time.Duration { return way })
		r.line.set(func(l *line) { l.twice = false })
	}
	to := w.at()
	w.pass(15 * w.length())
	var outages int64
	for _, r := range w.regions {
		outages += r.get(0).Stats().Outages
	}
	if outages == 0 {
		w.t.Error("no answer came too late")
	}
	return measured{"served": w.served(all, from, to), "healed": w.healed(all, to)}
}

var wayRows = []row{
	{
		id:      "cut-off",
		fault:   "A region cannot reach the coordinator for 20 windows; `FailClosed`",
		does:    "It hands on what it was granted, then refuses: it serves {served} of what it is asked for. The other regions serve {others} of theirs",
		lost:    "What it was granted and did not use dies with its window",
		heals:   "By itself, by its next attempt: {healed} after the way is back",
		figures: figures{"served": atMost(3, "%"), "others": atLeast(99, "%"), "healed": atMost(9, "s")},
		prove:   cutOff,
	},
	{
		id:      "cut-off-regional-only",
		fault:   "A region cannot reach the coordinator from the middle of a window on; `RegionalOnly`, windows of 10 s",
		does:    "It has leased ahead what it expects to need: of the rest of the window it serves {rest}, of the next one {next}",
		lost:    "What it expected and is not asked for dies with its window",
		heals:   "By its next attempt: {healed} after the way is back",
		setup:   setup{windows: 10, outage: federation.RegionalOnly},
		figures: figures{"rest": atLeast(97, "%"), "next": exactly(0, "%"), "healed": atMost(9, "s")},
		prove:   cutOffAhead,
	},
	{
		id:      "cut-off-nominal",
		fault:   "A region cannot reach the coordinator for 30 windows; `Nominal`",
		does:    "It goes on with its slice, {slice} of each window. The other regions serve {others} of what they are asked for",
		lost:    "What it is asked for beyond its slice",
		heals:   "By its next attempt: {healed} after the way is back it borrows again",
		setup:   setup{outage: federation.Nominal, nominal: 200},
		figures: figures{"slice": exactly(200, "units"), "others": atLeast(99, "%"), "healed": atMost(9, "s")},
		prove:   cutOffSlices,
	},
	{
		id:      "one-way",
		fault:   "Commands of a region arrive for 20 windows, and no answer comes back",
		does:    "As when it is cut off: it serves {served}. Grants whose answers are lost are repeated as totals, so that asking again takes no more; the other regions serve {others}",
		lost:    "What it was granted in vain: {vain} of the limit of the window in which it begins, and nothing of later ones",
		heals:   "By its next attempt: {healed} after answers come again",
		figures: figures{"vain": atMost(33, "%"), "served": atMost(3, "%"), "others": atLeast(99, "%"), "healed": atMost(9, "s")},
		prove:   mute,
	},
	{
		id:      "late-answers",
		fault:   "Commands and answers of a region are on the way for longer than a window, for 20 windows",
		does:    "An answer whose window is over is of no use: it serves {served}. The other regions serve {others}",
		lost:    "What it was granted so dies with its window",
		heals:   "With the first answer in time: {healed} after the way is short again",
		setup:   setup{timeout: 5 * time.Second},
		figures: figures{"served": atMost(3, "%"), "others": atLeast(99, "%"), "healed": atMost(9, "s")},
		prove:   slow,
	},
	{
		id:      "disorder",
		fault:   "For 30 windows every command arrives twice; copies and answers overtake each other, many after they were given up",
		does:    "Numbers that rise and totals make what is repeated or late change nothing. All regions together serve {served}",
		lost:    "Time: a command that is given up is sent again later",
		heals:   "{healed} after the way is in order again",
		setup:   setup{timeout: 300 * time.Millisecond},
		figures: figures{"served": atLeast(15, "%"), "healed": atMost(9, "s")},
		prove:   disorder,
	},
}

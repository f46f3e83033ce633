package failuremodes_test

import (
	"context"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// Faults of the hub.

// killed kills the leader in the middle of a window. The next one leads at once: later it
// would have to do with windows that begin after the crash.
func killed(w *world) measured {
	w.pass(w.length() / 3)
	index, before := w.index(), w.answered()
	w.hub.elect()
	w.nextWindow()
	w.nextWindow()
	return measured{"forfeited": w.forfeited(index), "unserved": w.unserved(before), "after": w.forfeited(index + 1)}
}

// killedOften kills a leader several times in one window.
func killedOften(w *world) measured {
	w.pass(w.length() / 10)
	index := w.index()
	const crashes = 3
	for range crashes {
		w.pass(w.length() / 20)
		w.hub.elect()
	}
	w.nextWindow()
	w.nextWindow()
	return measured{"crashes": crashes, "forfeited": w.forfeited(index), "after": w.forfeited(index + 1)}
}

// paused stops a leader, lets the next one lead, and lets the first go on: one region asks
// it until it notices.
func paused(w *world) measured {
	w.pass(w.length() / 3)
	index := w.index()
	old := w.hub.resign()
	w.regions[0].line.set(func(l *line) { l.to, l.cut = old, true })
	w.pass(w.length() / 100)
	w.hub.elect()
	w.pass(w.length() / 100)
	before := w.answered()
	w.regions[0].line.set(func(l *line) { l.cut = false })
	for old.Stats().Conflicts == 0 && w.index() == index {
		w.pass(tick)
	}
	granted := w.granted(0, before[0], index)
	if granted == 0 {
		w.t.Error("the old leader granted nothing")
	}
	w.regions[0].line.set(func(l *line) { l.to = w.hub })
	w.nextWindow()
	w.nextWindow()
	w.nextWindow()
	return measured{
		"granted": granted, "conflicts": float64(old.Stats().Conflicts),
		"forfeited": w.forfeited(index), "after": w.forfeited(index + 2),
	}
}

// handedOver changes the leader as a rollout does.
func handedOver(w *world) measured {
	w.pass(w.length() / 3)
	index := w.index()
	old := w.hub.resign()
	ctx, cancel := context.WithTimeout(w.t.Context(), w.length())
	defer cancel()
	old.Seal(ctx)
	w.hub.elect()
	w.nextWindow()
	w.nextWindow()
	return measured{"forfeited": w.forfeited(index), "after": w.forfeited(index + 1)}
}

// leaderless leaves the hub without a leader for as long as it takes to notice that a
// controller is dead.
func leaderless(w *world) measured {
	w.pass(w.length() / 3)
	from := w.at()
	w.hub.resign()
	w.pass(15 * w.length())
	before := w.answered()
	w.hub.elect()
	to := w.at()
	w.pass(15 * w.length())
	return measured{"served": w.served(all, from, to), "unserved": w.unserved(before), "healed": w.healed(all, to)}
}

// leaderlessSlices does the same to regions with slices.
func leaderlessSlices(w *world) measured {
	w.nextWindow()
	first := w.index()
	w.hub.resign()
	w.pass(30 * w.length())
	last := w.index()
	w.hub.elect()
	to := w.at()
	w.pass(15 * w.length())
	least, most := w.params.Limit, int64(0)
	for i := range w.regions {
		low, high := w.perWindow(i, first+1, last-1)
		least, most = min(least, low), max(most, high)
	}
	if least != most {
		w.t.Errorf("windows served %d to %d", least, most)
	}
	return measured{"slice": float64(least), "healed": w.healed(all, to)}
}

// apiServerAway leaves the leader alone with what it has set aside.
func apiServerAway(w *world) measured {
	w.pass(w.length() / 3)
	index := w.index()
	w.hub.journal.set(func(j *journal) { j.away = true })
	before := w.of(index)
	w.nextWindow()
	aside := 100 * float64(w.of(index)-before) / float64(w.params.Limit)
	next := w.at()
	w.pass(5 * w.length())
	w.hub.journal.set(func(j *journal) { j.away = false })
	to := w.at()
	w.pass(15 * w.length())
	return measured{"aside": aside, "served": w.served(all, next, to), "healed": w.healed(all, to)}
}

// recordGone deletes the record of a budget, and kills the leader.
func recordGone(w *world) measured {
	w.pass(w.length() / 3)
	before := w.answered()
	w.hub.journal.set(func(j *journal) { clear(j.records) })
	w.hub.elect()
	to := w.at()
	w.pass(15 * w.length())
	return measured{"unserved": w.unserved(before), "healed": w.healed(all, to)}
}

// createdAgain deletes the budget, which the hub enters in the record, and creates it again.
func createdAgain(w *world) measured {
	w.pass(w.length() / 3)
	before := w.answered()
	w.hub.resign()
	w.hub.journal.set(func(j *journal) {
		for id, r := range j.records {
			j.next++
			j.records[id], j.versions[id] = r.Ceased(), j.next
		}
	})
	w.pass(w.length() / 6)
	w.hub.elect()
	from := w.at()
	w.pass(15 * w.length())
	return measured{"unserved": w.unserved(before), "healed": w.healed(all, from)}
}

// replaced moves the budget to another hub: it is deleted in the old one first.
func replaced(w *world) measured {
	w.pass(w.length() / 3)
	index := w.index()
	old := w.hub.resign()
	old.Seal(w.t.Context())
	to := newHub()
	before := w.answered()
	from := w.at()
	for _, r := range w.regions {
		ctx, cancel := context.WithTimeout(w.t.Context(), w.length())
		r.shut(ctx, 0)
		cancel()
		r.line.set(func(l *line) { l.to = to })
		r.start(0)
	}
	w.pass(15 * w.length())
	if w.of(index+1) == 0 {
		w.t.Error("the window after was not served")
	}
	return measured{"unserved": w.unserved(before), "healed": w.healed(all, from)}
}

// granted returns what a coordinator granted of a window in the answers from a number on.
func (w *world) granted(region, since int, index int64) (units float64) {
	var had int64
	w.regions[region].line.set(func(l *line) {
		for i, g := range l.grants {
			if g.Epoch.Index != index || g.Reason == ledger.Unreserved {
				continue
			}
			if i >= since {
				units += float64(max(0, g.Granted-had))
			}
			had = g.Granted
		}
	})
	return 100 * units / float64(w.params.Limit)
}

var leaderRows = []row{
	{
		id:      "hub-killed",
		fault:   "The hub's controller is killed in the middle of a window, and the next one leads at once",
		does:    "Regions ask again. The new one takes all that was set aside for granted",
		lost:    "{forfeited} of the window's limit: a block, and the odd unit that a region has left; {unserved} not served",
		heals:   "At once: of the next window {after} of the limit are not used",
		setup:   setup{load: press},
		figures: figures{"forfeited": atMost(12, "%"), "unserved": exactly(0, "windows"), "after": atMost(2, "%")},
		prove:   killed,
	},
	{
		id:      "hub-killed-often",
		fault:   "The hub's controllers are killed one after another in one window",
		does:    "The same, for each of {crashes}",
		lost:    "{forfeited} of the window's limit: a block for each",
		heals:   "At once: of the next window {after} of the limit are not used",
		setup:   setup{load: press},
		figures: figures{"crashes": exactly(3, "crashes"), "forfeited": atMost(32, "%"), "after": atMost(2, "%")},
		prove:   killedOften,
	},
	{
		id:      "hub-paused",
		fault:   "The hub's controller stands still until another leads, then goes on, and a region still asks it; windows of 10 s",
		does:    "It grants what it had set aside, {granted} of the limit, and gives up when a write of its own finds another's: after {conflicts}",
		lost:    "{forfeited} of the window's limit: a block",
		heals:   "Regions that heard of the new one believe the old one no more: of a later window {after} of the limit are not used",
		setup:   setup{load: press, windows: 10},
		figures: figures{"granted": atMost(blockPercent, "%"), "conflicts": exactly(1, "conflicts"), "forfeited": atMost(12, "%"), "after": atMost(2, "%")},
		prove:   paused,
	},
	{
		id:      "hub-hands-over",
		fault:   "The hub's leader changes as planned (a rollout, a drained node) in the middle of a window",
		does:    "The old one gives up what it set aside and did not grant; regions ask again",
		lost:    "{forfeited} of the window's limit",
		heals:   "At once: of the next window {after} of the limit are not used",
		setup:   setup{load: press},
		figures: figures{"forfeited": atMost(2, "%"), "after": atMost(2, "%")},
		prove:   handedOver,
	},
	{
		id:      "hub-away",
		fault:   "Nobody leads the hub for 15 windows",
		does:    "Regions hand on what they were granted, then all refuse: they serve {served}",
		lost:    "The traffic of the outage. No window more is unserved when it is over: {unserved}",
		heals:   "{healed} after somebody leads again, in a window with its whole limit",
		figures: figures{"served": atMost(3, "%"), "unserved": exactly(0, "windows"), "healed": atMost(9, "s")},
		prove:   leaderless,
	},
	{
		id:      "hub-away-nominal",
		fault:   "Nobody leads the hub for 30 windows; `Nominal`",
		does:    "Each region goes on with its slice: {slice} of each window",
		lost:    "What no slice holds of each window",
		heals:   "{healed} after somebody leads again",
		setup:   setup{outage: federation.Nominal, nominal: 200},
		figures: figures{"slice": exactly(200, "units"), "healed": atMost(9, "s")},
		prove:   leaderlessSlices,
	},
	{
		id:      "hub-api-server",
		fault:   "The hub's API server does not answer its controller",
		does:    "The leader grants what is set aside, with what regions have {aside} of the limit, then refuses: regions serve {served} of the windows that follow",
		lost:    "The traffic of the outage",
		heals:   "{healed} after it answers again",
		figures: figures{"aside": atMost(20, "%"), "served": atMost(3, "%"), "healed": atMost(9, "s")},
		prove:   apiServerAway,
	},
	{
		id:      "hub-record-deleted",
		fault:   "Somebody deletes the record of the budget in the hub, and its controller is killed",
		does:    "A controller without a record grants nothing of windows that began before it",
		lost:    "{unserved}, the open one",
		heals:   "{healed} afterwards, with the next window",
		figures: figures{"unserved": exactly(1, "windows"), "healed": atMost(9, "s")},
		prove:   recordGone,
	},
	{
		id:      "hub-created-again",
		fault:   "The budget is deleted in its hub and created again, in the same window",
		does:    "Another hub may have kept it meanwhile, so it grants nothing of a window that was open then, as `Learning` says. A rate that it did not have before waits for nothing",
		lost:    "{unserved}, the open one",
		heals:   "{healed} after it was created again, with the next window",
		figures: figures{"unserved": exactly(1, "windows"), "healed": atMost(9, "s")},
		prove:   createdAgain,
	},
	{
		id:      "hub-replaced",
		fault:   "The budget moves to another hub: deleted in the old one, applied in the new one, members moved to it",
		does:    "The new hub's memory begins then: it grants nothing of the open window",
		lost:    "{unserved}, the open one",
		heals:   "{healed} after the members were moved",
		setup:   setup{mortal: true},
		figures: figures{"unserved": exactly(1, "windows"), "healed": atMost(9, "s")},
		prove:   replaced,
	},
}

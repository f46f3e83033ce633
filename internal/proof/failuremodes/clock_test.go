package failuremodes_test

import (
	"time"

	"github.com/weir-dev/weir/pkg/federation"
)

// Faults of clocks. The clocks of regions need not agree with each other.

// forward sets the coordinator's clock forward by some windows and a half.
func forward(w *world) measured {
	w.pass(w.length() / 3)
	from, before := w.at(), w.answered()
	w.hub.set(3*w.length() + w.length()/2)
	w.pass(15 * w.length())
	return measured{"unserved": w.unserved(before), "healed": w.healed(all, from)}
}

// backward sets it back.
func backward(w *world) measured {
	w.pass(w.length() / 3)
	const step = 5 * time.Second
	w.hub.set(-step)
	from := w.at()
	w.pass(step)
	to := w.at()
	w.pass(15 * w.length())
	return measured{"served": w.served(all, from, to), "healed": w.healed(all, to)}
}

var clockRows = []row{
	{
		id:      "clock-forward",
		fault:   "The coordinator's clock is set forward by 3½ windows",
		does:    "The windows between do not happen. Regions hand on what they have for no longer than it would have lasted",
		lost:    "What was granted of the window that was left; {unserved} not served",
		heals:   "{healed} after the step",
		setup:   setup{steps: true},
		figures: figures{"unserved": exactly(0, "windows"), "healed": atMost(3, "s")},
		prove:   forward,
	},
	{
		id:      "clock-back",
		fault:   "The coordinator's clock is set back by 5 windows",
		does:    "It grants nothing until it has caught up: no window is served twice. Until then regions serve {served}",
		lost:    "The time of the step",
		heals:   "{healed} after it has caught up",
		setup:   setup{steps: true},
		figures: figures{"served": atMost(10, "%"), "healed": atMost(9, "s")},
		prove:   backward,
	},
	{
		id:      "clock-back-nominal",
		fault:   "The coordinator's clock is set back by 5 windows; `Nominal`",
		does:    "Windows that were begun with a slice are not begun again: until it has caught up regions serve {served}",
		lost:    "The time of the step",
		heals:   "{healed} after it has caught up",
		setup:   setup{outage: federation.Nominal, nominal: 200, steps: true},
		figures: figures{"served": atMost(10, "%"), "healed": atMost(9, "s")},
		prove:   backward,
	},
}

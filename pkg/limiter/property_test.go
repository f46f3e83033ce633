package limiter_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestRulesHoldOnRandomTimelines drives worlds at random for a long time. The
// rules are the ones that world checks at every step.
func TestRulesHoldOnRandomTimelines(t *testing.T) {
	const timelines, events = 1500, 300
	seen := map[limiter.Reason]int{}
	for seed := range uint64(timelines) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := &world{now: 10_000, params: randomParams(rng, 1)}
		for i := range events {
			what, reason, err := w.randomEvent(rng)
			if err != nil {
				t.Fatalf("seed %d, event %d, %s: %v\n%+v", seed, i, what, err, *w)
			}
			if what == "take" {
				seen[reason]++
			}
		}
	}
	for reason := range limiter.Forfeited {
		if seen[reason] < timelines {
			t.Errorf("only %d takes ended in %v: the timelines do not reach far enough", seen[reason], reason)
		}
	}
}

// randomEvent lets one thing happen and says what and, for a take, how it ended.
func (w *world) randomEvent(rng *rand.Rand) (string, limiter.Reason, error) {
	p := w.params
	if rng.IntN(20) == 0 && p.Generation > 1 {
		p = randomParams(rng, p.Generation-1) // a holder that is behind
	}
	switch n := rng.IntN(100); {
	case n < 55:
		low := 1 + rng.Int64N(4)
		res, err := w.take(p, low, low+rng.Int64N(6))
		return "take", res.Reason, err
	case n < 70 && len(w.grants) > 0:
		return "return", 0, w.giveBack(p, rng.IntN(len(w.grants)))
	case n < 88:
		w.now += limiter.Instant(rng.IntN(25))
		return "time passes", 0, nil
	case n < 91:
		w.now -= limiter.Instant(rng.IntN(40))
		return "the clock steps back", 0, nil
	case n < 95:
		w.params = randomParams(rng, p.Generation+1)
		return "edit", 0, nil
	case n < 97:
		w.expire()
		return "expiry", 0, nil
	case n < 98:
		w.handOver(limiter.Micros(rng.IntN(30)))
		return "hand-over", 0, nil
	case n < 99:
		w.forget()
		return "restart", 0, nil
	default:
		w.now += limiter.Instant(rng.IntN(300))
		return "a long time passes", 0, nil
	}
}

// randomParams returns 1 to 3 rates whose windows end at different times.
func randomParams(rng *rand.Rand, generation int64) limiter.Params {
	lengths := []limiter.Micros{7, 12, 20, 60}
	p := limiter.Params{Generation: generation}
	for _, i := range rng.Perm(len(lengths))[:1+rng.IntN(3)] {
		p.Rates = append(p.Rates, limiter.Rate{Limit: 1 + rng.Int64N(9), Window: lengths[i]})
	}
	return p
}

// TestRulesHoldInEveryShortHistory explores, breadth first, everything that can
// happen within a few instants around three tiny policies, with at most one
// misfortune.
func TestRulesHoldInEveryShortHistory(t *testing.T) {
	start := history{world: &world{now: firstInstant, params: tinyPolicies[0]}}
	seen := map[string]bool{start.id(): true}
	for frontier := []history{start}; len(frontier) > 0; {
		var next []history
		for _, h := range frontier {
			for what, event := range tinyEvents {
				v := history{world: h.clone(), misfortunes: h.misfortunes}
				happened, err := event(&v)
				if err != nil {
					t.Fatalf("%s after %+v: %v", what, *h.world, err)
				}
				if id := v.id(); happened && !seen[id] {
					seen[id] = true
					next = append(next, v)
				}
			}
		}
		frontier = next
	}
	const atLeast = 20_000
	if t.Logf("%d states", len(seen)); len(seen) < atLeast {
		t.Errorf("only %d states: the search does not reach far enough", len(seen))
	}
}

// A history is a world and how often the store behind it was unlucky.
type history struct {
	*world
	misfortunes int
}

// id distinguishes histories by what can still matter.
func (h history) id() string {
	var id []byte
	add := func(list ...int64) {
		for _, v := range list {
			id = append(id, byte(v)) // all numbers of a short history are small
		}
	}
	addWindows := func(w limiter.Windows) {
		add(int64(w.N))
		for _, v := range w.Slice() {
			add(v.Limit, int64(v.Window), v.Index, v.Granted)
		}
	}
	add(int64(h.misfortunes), int64(h.now), h.params.Generation, h.state.Generation)
	add(int64(h.memory.Since), int64(h.memory.Latest), int64(len(h.memory.Gaps)))
	addWindows(h.state.Windows(h.now))
	for _, g := range h.memory.Gaps {
		add(int64(g.From), int64(g.To))
	}
	for _, g := range h.grants {
		add(g.amount, int64(g.at))
		addWindows(g.windows)
	}
	for _, b := range h.budgets {
		if int64(firstInstant)/int64(b.length) <= b.index { // can still be open
			forgotten := int64(0)
			if b.forgotten {
				forgotten = 1
			}
			add(int64(b.length), b.index, b.limit, b.granted, forgotten)
		}
	}
	return string(id)
}

// The bounds of the search.
const (
	firstInstant   = limiter.Instant(6)
	lastInstant    = limiter.Instant(9)
	maxMisfortunes = 1
)

var tinyPolicies = []limiter.Params{
	{Generation: 1, Rates: []limiter.Rate{{Limit: 2, Window: 2}}},
	{Generation: 2, Rates: []limiter.Rate{{Limit: 1, Window: 2}, {Limit: 2, Window: 3}}},
	{Generation: 3, Rates: []limiter.Rate{{Limit: 3, Window: 3}}},
}

// tinyEvents are all that can happen. Each reports whether it did.
var tinyEvents = map[string]func(*history) (bool, error){
	"take": func(h *history) (bool, error) {
		_, err := h.take(h.params, 1, 1)
		return true, err
	},
	"lease": func(h *history) (bool, error) {
		_, err := h.take(h.params, 1, 3)
		return true, err
	},
	"return": func(h *history) (bool, error) {
		if len(h.grants) == 0 {
			return false, nil
		}
		return true, h.giveBack(h.params, 0)
	},
	"time passes": func(h *history) (bool, error) {
		h.now++
		return h.now <= lastInstant, nil
	},
	"edit": func(h *history) (bool, error) {
		if h.params.Generation == int64(len(tinyPolicies)) {
			return false, nil
		}
		h.params = tinyPolicies[h.params.Generation]
		return true, nil
	},
	"expiry": func(h *history) (bool, error) {
		h.expire()
		return true, nil
	},
	"the clock steps back": func(h *history) (bool, error) {
		h.now -= 2
		h.misfortunes++
		return h.now >= firstInstant && h.misfortunes <= maxMisfortunes, nil
	},
	"restart": func(h *history) (bool, error) {
		h.forget()
		h.misfortunes++
		return h.misfortunes <= maxMisfortunes, nil
	},
	"hand-over": func(h *history) (bool, error) {
		h.handOver(1)
		h.misfortunes++
		return h.now <= lastInstant && h.misfortunes <= maxMisfortunes, nil
	},
}

package pools_test

import (
	"errors"
	"iter"
	"os"
	"runtime/debug"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A model is a fleet that has to keep its promise to the unit: no history breaks
// it, and the shortest one that has as much in flight as it allows has that many
// steps.
type model struct {
	name  string
	steps int
	fleet *fleet
}

// poolOf returns the parameters of a pool whose shares last that many ticks.
func poolOf(limit, ttl int64) pool.Params {
	return pool.Params{
		Min: limit, Max: limit, Initial: limit, Generation: 1,
		TTL: limiter.Micros(ttl) * tick, Quarantine: limiter.Micros(ttl) * tick,
	}
}

// fleetOf returns a fleet of two holders.
func fleetOf(change func(*fleet), policies ...pool.Params) *fleet {
	for i := range policies {
		policies[i].Generation = int64(i + 1)
	}
	f := &fleet{holders: 2, policies: policies, rules: production(), limit: 2_000_000}
	change(f)
	return f
}

// limits returns parameters by which the limit follows what holders infer.
func limits(low, initial, high int64, aggregate pool.Aggregate) pool.Params {
	p := poolOf(initial, 1)
	p.Min, p.Max, p.Aggregate = low, high, aggregate
	return p
}

func models() []model {
	byDemand := poolOf(3, 1)
	byDemand.Allocation = pool.DemandProportional
	return append([]model{
		{"beats that take no time", 3, fleetOf(func(*fleet) {}, poolOf(2, 2))},
		{"beats that take no time, 3 holders", 7, fleetOf(func(f *fleet) { f.holders = 3 }, poolOf(6, 1))},
		{"late and lost beats", 5, fleetOf(func(f *fleet) { f.late = 2 }, poolOf(2, 2))},
		{"late beats, an uneven limit", 4, fleetOf(func(f *fleet) { f.late, f.uneven = 1, true }, poolOf(3, 1))},
		{"late beats, by demand", 4, fleetOf(func(f *fleet) { f.late, f.uneven = 1, true }, byDemand)},
		{"late beats, 3 holders", 3, fleetOf(func(f *fleet) { f.holders, f.late, f.uneven = 3, 1, true }, poolOf(2, 1))},
		{"beats that arrive again", 3, fleetOf(func(f *fleet) { f.late, f.strays = 1, true }, poolOf(2, 1))},
		{"beats that arrive again, longer shares", 2, fleetOf(func(f *fleet) { f.late, f.strays = 1, true }, poolOf(1, 2))},
		{"answers that are overtaken", 3, fleetOf(func(f *fleet) { f.late, f.overdue = 1, true }, poolOf(2, 2))},
		{"the most in flight is reported", 3, fleetOf(func(f *fleet) { f.late, f.peaks = 1, true }, poolOf(2, 1))},
		{"holders that leave", 3, fleetOf(func(f *fleet) { f.late, f.leaves, f.starts = 1, true, 1 }, poolOf(2, 2))},
		{"pods that start again", 3, fleetOf(func(f *fleet) { f.late, f.starts = 1, 2 }, poolOf(2, 1))},
		{"pods that start again, beats that arrive again", 2, fleetOf(func(f *fleet) { f.late, f.strays, f.starts = 1, true, 1 }, poolOf(1, 1))},
	}, append(misfortunes(), modelsByKey()...)...)
}

func misfortunes() []model {
	longer := poolOf(2, 1)
	longer.TTL, longer.Quarantine = 2*tick, 2*tick
	return []model{
		{"the coordinator forgets", 3, fleetOf(func(f *fleet) { f.late, f.forgets = 1, 1 }, poolOf(2, 2))},
		{"the coordinator forgets, both late", 5, fleetOf(func(f *fleet) { f.late, f.forgets = 2, 1 }, poolOf(2, 1))},
		{"the coordinator forgets twice", 3, fleetOf(func(f *fleet) { f.late, f.forgets = 1, 2 }, poolOf(2, 1))},
		{"the coordinator forgets, beats that arrive again", 3, fleetOf(func(f *fleet) { f.late, f.strays, f.forgets = 1, true, 1 }, poolOf(2, 1))},
		{"the coordinator forgets, answers that are overtaken", 3, fleetOf(func(f *fleet) { f.late, f.overdue, f.forgets = 1, true, 1 }, poolOf(2, 2))},
		{"another leader takes over", 3, fleetOf(func(f *fleet) { f.late, f.moves = 1, 2 }, poolOf(2, 2))},
		{"the coordinator forgets, and another leader takes over", 3, fleetOf(func(f *fleet) { f.late, f.forgets, f.moves = 1, 1, 1 }, poolOf(2, 2))},
		{"another leader takes over, beats that arrive again", 3, fleetOf(func(f *fleet) { f.late, f.strays, f.moves = 1, true, 1 }, poolOf(2, 1))},
		{"the coordinator's clock is fast, requests are aborted", 3, fleetOf(func(f *fleet) { f.late, f.margin, f.gains = 1, 1, 1 }, poolOf(2, 2))},
		{"requests outlive their share", 3, fleetOf(func(f *fleet) { f.late, f.margin, f.request = 1, 1, 1 }, poolOf(2, 2))},
		{"the coordinator's clock is fast, and requests outlive their share", 3, fleetOf(func(f *fleet) { f.late, f.margin, f.request, f.gains = 1, 2, 1, 1 }, poolOf(2, 3))},
		{"holders that are evicted too early", 3, fleetOf(func(f *fleet) { f.late, f.gains, f.early = 1, 2, true }, poolOf(2, 2))},
		{"holders infer limits, the smallest counts", 2, fleetOf(func(f *fleet) { f.late, f.opinions, f.uneven = 1, []int64{1, 3}, true }, limits(1, 2, 3, pool.Min))},
		{"holders infer limits or none", 2, fleetOf(func(f *fleet) { f.opinions, f.uneven = []int64{0, 1, 3}, true }, limits(1, 2, 3, pool.Min))},
		{"holders infer limits, the median counts", 2, fleetOf(func(f *fleet) { f.holders, f.opinions, f.uneven = 3, []int64{1, 2}, true }, limits(1, 1, 2, pool.Median))},
		{"holders infer limits, and the coordinator forgets", 2, fleetOf(func(f *fleet) { f.opinions, f.forgets, f.uneven = []int64{1, 3}, 1, true }, limits(1, 2, 3, pool.Min))},
		{"the limit is edited", 3, fleetOf(func(f *fleet) { f.late, f.uneven = 1, true }, poolOf(2, 1), poolOf(1, 1), poolOf(3, 1))},
		{"shares live longer after an edit", 3, fleetOf(func(f *fleet) { f.late = 1 }, poolOf(2, 1), longer)},
		{"shares live shorter after an edit", 3, fleetOf(func(f *fleet) { f.late = 1 }, poolOf(2, 2), poolOf(2, 1))},
	}
}

// TestMain trades memory for time: a search keeps nearly all that it makes.
func TestMain(m *testing.M) {
	debug.SetGCPercent(200)
	os.Exit(m.Run())
}

// wholeEnv has the search visit every state of the models. Without it each search ends after
// shortBound states: it has tried every short history then, and the figures of the page are of
// such.
const (
	wholeEnv   = "WEIR_EXPLORE_WHOLE"
	shortBound = 100_000
)

func TestPromisesHoldInEveryHistory(t *testing.T) {
	whole := os.Getenv(wholeEnv) != ""
	for _, m := range models() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			machine := m.fleet.model()
			if !whole {
				machine.Bound = min(machine.Bound, shortBound)
			}
			r, err := explore.Search(machine, nil)
			if cut := new(explore.TooLargeError); err != nil && (whole || !errors.As(err, &cut)) {
				t.Fatal(err)
			}
			t.Logf("%d states, %d transitions, depth %d; all of them: %t", r.States, r.Transitions, r.Depth, err == nil)
			if c := r.Counterexample; c != nil {
				t.Fatalf("the promise is broken:\n%v", c)
			}
			if got := tightest(t, m.fleet); got != m.steps {
				t.Errorf("the shortest history that has all in flight has %d steps, want %d", got, m.steps)
			}
		})
	}
}

// tightest refutes that one less could be promised, and returns the length of the
// shortest history that does.
func tightest(t *testing.T, f *fleet) int {
	t.Helper()
	lower := *f
	lower.spare = 1
	return explore.Refute(t, lower.model())
}

// TestModelsDoWhatTheySay finds every event that a model switches on in its
// histories, so that none holds because little happens in it.
func TestModelsDoWhatTheySay(t *testing.T) {
	for _, m := range models() {
		missing := m.fleet.vocabulary()
		machine := m.fleet.model()
		next := machine.Next
		machine.Next = func(w world) iter.Seq2[event, world] {
			return func(yield func(event, world) bool) {
				for e, v := range next(w) {
					delete(missing, e.verb)
					if !yield(e, v) {
						return
					}
				}
			}
		}
		machine.Bound = 5000
		_, _ = explore.Search(machine, nil) // all of them happen early
		for verb := range missing {
			t.Errorf("%s: it never happens that a holder or the coordinator %q", m.name, verb)
		}
	}
}

// vocabulary returns what has to happen in a model.
func (f *fleet) vocabulary() map[string]bool {
	verbs := map[string]bool{"a tick passes": true}
	for verb, on := range map[string]bool{
		"admits":                   f.keys == 0,
		"finishes":                 f.keys == 0,
		"admits a request of gold": f.keys > 0,
		"finishes one of free":     f.keys > 0,
		"beats and has a share of": f.late < f.holders,
		"sends beat":               f.late > 0,
		"is heard with beat":       f.late > 0,
		"hears that its share is":  f.late > 0,
		"gives its beat up":        f.late > 0,
		"is heard with stray beat": f.strays,
		"gives up, and it may arrive nevertheless, beat": f.strays,
		"is heard, and may be once more, with beat":      f.strays,
		"hears late that its share is":                   f.overdue,
		"gives up, and its answer is on the way,":        f.overdue,
		"leaves":                               f.leaves,
		"starts again":                         f.leaves && f.starts > 0,
		"dies and starts again":                f.starts > 0,
		"hears of edit":                        len(f.policies) > 1,
		"the coordinator forgets":              f.forgets > 0,
		"another leader takes over":            f.moves > 0,
		"the coordinator's clock gains a tick": f.gains > 0,
	} {
		if on {
			verbs[verb] = true
		}
	}
	return verbs
}

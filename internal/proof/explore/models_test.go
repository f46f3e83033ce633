package explore_test

import (
	"iter"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A model is a fleet that has to keep its promise to the unit: no history breaks
// it, and the shortest one that admits as much as it allows has that many steps.
type model struct {
	name  string
	steps int
	fleet *fleet
}

// Ticks that divide the windows of the models.
const (
	whole   = limiter.MinWindow
	half    = limiter.MinWindow / 2
	quarter = limiter.MinWindow / 4
)

func fixed(limit int64, window limiter.Micros) limiter.Params {
	return limiter.Params{Rates: []limiter.Rate{{Limit: limit, Window: window}}}
}

func bucket(limit, burst int64, lifetime limiter.Micros) limiter.Params {
	return limiter.Params{
		Algorithm: limiter.TokenBucket, Lifetime: lifetime,
		Rates: []limiter.Rate{{Limit: limit, Window: whole, Burst: burst}},
	}
}

func sliding(limit int64, window, lifetime limiter.Micros) limiter.Params {
	return limiter.Params{
		Algorithm: limiter.SlidingLog, Lifetime: lifetime,
		Rates: []limiter.Rate{{Limit: limit, Window: window}},
	}
}

func with(p limiter.Params, change func(*limiter.Params)) limiter.Params {
	change(&p)
	return p
}

// fleetOf returns a fleet of two holders that hear of one policy after the other.
func fleetOf(tick limiter.Micros, batch int64, change func(*fleet), policies ...limiter.Params) *fleet {
	for i := range policies {
		policies[i].Generation = int64(i + 1)
	}
	f := &fleet{
		holders: 2, policies: policies, costs: []int64{1}, batch: batch, tick: tick,
		alike: true, rules: production(), audit: contractOf(policies[0], tick), bound: 150_000,
	}
	change(f)
	return f
}

func TestPromisesHoldInEveryHistory(t *testing.T) {
	for _, m := range append(windowModels(), rateModels()...) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range m.fleet.policies {
				if err := p.Validate(); err != nil {
					t.Errorf("the policy would be refused: %v", err)
				}
			}
			explore.Hold(t, m.fleet.model(), nil)
			if got := tightest(t, m.fleet); got != m.steps {
				t.Errorf("the shortest history that admits all has %d steps, want %d", got, m.steps)
			}
		})
	}
}

// TestModelsDoWhatTheySay finds every event that a model switches on in its
// histories, so that none holds because little happens in it.
func TestModelsDoWhatTheySay(t *testing.T) {
	for _, m := range append(windowModels(), rateModels()...) {
		missing := m.fleet.vocabulary()
		machine := m.fleet.model()
		next := machine.Next
		machine.Next = func(w world) iter.Seq2[action, world] {
			return func(yield func(action, world) bool) {
				for a, v := range next(w) {
					delete(missing, a.verb)
					if !yield(a, v) {
						return
					}
				}
			}
		}
		machine.Bound = 5000
		_, _ = explore.Search(machine, nil) // all of them happen early
		for verb := range missing {
			t.Errorf("%s: it never happens that a holder or the store %q", m.name, verb)
		}
	}
}

// vocabulary returns what has to happen in a model.
func (f *fleet) vocabulary() map[string]bool {
	verbs := map[string]bool{"serves": true, "a tick passes": true}
	for verb, on := range map[string]bool{
		"leases for":                       !f.late,
		"asks for":                         f.late,
		"is granted":                       f.late,
		"receives":                         f.late,
		"asks ahead for":                   f.lowWater > 0,
		"loses its call":                   f.lost,
		"gives its call up":                f.lost,
		"does not wait for a grant of":     f.lost,
		"returns":                          f.returns,
		"has returned":                     f.returns && f.late,
		"loses its return":                 f.returns && f.lost,
		"cancels":                          f.cancels,
		"hears of edit":                    len(f.policies) > 1,
		"the store forgets":                f.restarts > 0,
		"the store's clock steps back":     f.stepBack > 0,
		"the store's clock runs ahead":     f.jumps > 0,
		"the store's clock is set right":   f.jumps > 0 || f.right,
		"the store drops the key":          f.expires,
		"drains":                           f.moves,
		"hears of the new store":           f.moves,
		"the fleet moves to another store": f.moves,
	} {
		if on {
			verbs[verb] = true
		}
	}
	return verbs
}

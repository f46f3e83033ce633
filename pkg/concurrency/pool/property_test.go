package pool_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

func fixed(limit int64) pool.Params {
	return pool.Params{Min: limit, Max: limit, Initial: limit, TTL: 8 * tick, Quarantine: 8 * tick, Generation: 1}
}

func proportional(p pool.Params) pool.Params {
	p.Allocation = pool.DemandProportional
	return p
}

func inferred(p pool.Params) pool.Params {
	p.Min, p.Max, p.Initial = 2, 10, 5
	return p
}

func occupancy(p pool.Params) pool.Params {
	p.Handoff = pool.Occupancy
	return p
}

// worlds are those in which the bound holds at every instant.
var worlds = map[string]struct {
	rules  rules
	params pool.Params
}{
	"equal shares":          {rules{limit: 6}, fixed(6)},
	"one unit":              {rules{limit: 1}, fixed(1)},
	"shares by demand":      {rules{limit: 6}, proportional(fixed(6))},
	"a memory that is lost": {rules{limit: 6, loss: true}, fixed(6)},
	"a memory that is lost, shares by demand":   {rules{limit: 5, loss: true}, proportional(fixed(5))},
	"a configuration that changes":              {rules{limit: 6, edits: true}, fixed(6)},
	"a configuration that changes, memory lost": {rules{limit: 6, edits: true, loss: true}, fixed(6)},
	"a limit that moves":                        {rules{}, inferred(fixed(0))},
	"a limit that moves, shares by demand":      {rules{edits: true}, inferred(proportional(fixed(0)))},
	"messages that come in time":                {rules{prompt: true}, inferred(fixed(0))},
	"messages in time, shares by demand":        {rules{prompt: true, edits: true}, inferred(proportional(fixed(0)))},
}

const (
	seeds = 60
	steps = 3000
)

func TestFleetNeverHasMoreInFlightThanTheLimit(t *testing.T) {
	for name, tc := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var most int64
			happened := map[string]int{}
			for seed := range uint64(seeds) {
				w := newWorld(seed, tc.rules, tc.params)
				if err := w.run(steps); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				most = max(most, w.most)
				for what, n := range w.happened {
					happened[what] += n
				}
			}
			t.Logf("most in flight %d; %v", most, happened)
			if tc.rules.limit > 0 && most != tc.rules.limit {
				t.Errorf("the most in flight was %d, so the test did not reach the limit of %d", most, tc.rules.limit)
			}
			for _, what := range tc.rules.vocabulary() {
				if happened[what] == 0 {
					t.Errorf("it never happened that %s", what)
				}
			}
		})
	}
}

func (r rules) vocabulary() []string {
	words := []string{"a command came twice", "a command was stale", "a grant came too late", "a holder left", "a memory was handed over"}
	if !r.prompt {
		words = append(words, "a share expired", "a holder died", "a holder came back")
	}
	if r.loss {
		words = append(words, "a memory was lost", "a quarantine confirmed a share")
	}
	if r.edits {
		words = append(words, "the configuration changed")
	}
	return words
}

// run lets things happen and checks after each that the fleet is within its bound.
func (w *world) run(steps int) error {
	for i := range steps {
		if err := w.step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if err := w.check(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (w *world) check() error {
	sum, m := w.inFlight(), w.state.Memory()
	w.most = max(w.most, sum)
	bound := w.limit
	if bound == 0 {
		bound = m.Bound
	}
	if sum > bound {
		return fmt.Errorf("%d in flight, more than %d", sum, bound)
	}
	if !w.loss {
		return w.checkReserves(m)
	}
	return nil
}

// checkReserves finds everything that is in flight within what is reserved for it.
func (w *world) checkReserves(m pool.Memory) error {
	records := w.records()
	for _, h := range w.members {
		if r := records[h.name]; h.inFlight > max(r.Unacked, r.InFlight) {
			return fmt.Errorf("%s has %d in flight, more than is reserved by %+v", h.name, h.inFlight, r)
		}
	}
	return nil
}

// TestSharesNeverAddUpToMoreThanTheLimit is the bound that is left when what a
// holder gave up is granted to others before it confirmed that.
func TestSharesNeverAddUpToMoreThanTheLimit(t *testing.T) {
	for name, p := range map[string]pool.Params{
		"acknowledged":         fixed(6),
		"occupancy":            occupancy(fixed(6)),
		"occupancy, by demand": occupancy(proportional(fixed(6))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var most int64
			for seed := range uint64(seeds) {
				w := newWorld(seed, rules{limit: 6}, p)
				for i := range steps {
					if err := w.step(); err != nil {
						t.Fatalf("seed %d, step %d: %v", seed, i, err)
					}
					var granted int64
					for _, r := range w.state.Memory().Holders {
						granted += r.Share
					}
					if granted > 6 {
						t.Fatalf("seed %d, step %d: shares add up to %d", seed, i, granted)
					}
					most = max(most, w.inFlight())
				}
			}
			if over := most > 6; over != (p.Handoff == pool.Occupancy) {
				t.Errorf("the most in flight was %d", most)
			}
		})
	}
}

// TestHoldersHaveToHeed finds that the bound breaks when holders do not do their
// part, so what is asked of them is no more than needed.
func TestHoldersHaveToHeed(t *testing.T) {
	for name, tc := range map[string]struct {
		rules  rules
		params pool.Params
	}{
		"when their share expires":                {rules{limit: 6, overstay: 2 * tick}, fixed(6)},
		"that work ends when their share expires": {rules{limit: 6, linger: true}, fixed(6)},
		"which of two grants is the later":        {rules{limit: 6, retrace: true}, fixed(6)},
		"that a report is read at one instant":    {rules{limit: 6, torn: true}, fixed(6)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20 * seeds) {
				if w := newWorld(seed, tc.rules, tc.params); w.run(steps) != nil {
					return
				}
			}
			t.Error("the bound holds without")
		})
	}
}

// TestQuarantineGrantsNothingNew is the history that random ones hardly find: a
// beat names a share that expires on its way and is granted to another, the memory of
// that is lost, and the new one hears of the old share first.
func TestQuarantineGrantsNothingNew(t *testing.T) {
	for name, tc := range map[string]struct {
		greedy bool
		want   int64
	}{
		"a holder that keeps what it still holds":  {false, 6},
		"a holder that takes what it had reported": {true, 12},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, rules{limit: 6, greedy: tc.greedy}, fixed(6))
			a, b := w.members[0], w.members[1]
			a.wants, b.wants = true, true
			w.members = w.members[:2]
			w.exchange(t, a)
			w.pass(7 * tick)
			w.beat(a)
			w.pass(tick)
			w.exchange(t, b)
			w.rush(b)
			w.forget()
			w.exchange(t, a)
			w.rush(a)
			if got := w.inFlight(); got != tc.want {
				t.Errorf("%d in flight, want %d", got, tc.want)
			}
		})
	}
}

// TestQuarantineEndsUnconfirmedShares lets a holder take a share of the lost
// memory after it reported a smaller to the new one. It then has more in flight than
// the new one knows, until it confirms.
func TestQuarantineEndsUnconfirmedShares(t *testing.T) {
	w := newWorld(1, rules{limit: 6}, fixed(6))
	a, b := w.members[0], w.members[1]
	w.members = w.members[:2]
	a.wants, b.wants = true, true
	for _, m := range []*member{a, b, a, a, b} {
		w.exchange(t, m)
	}
	w.send(b, pool.Leave)
	w.exchange(t, b)
	w.rush(a)
	w.beat(a)
	if err := w.apply(w.wire[0]); err != nil { // it is granted everything
		t.Fatal(err)
	}
	w.wire = nil
	w.forget()
	w.pass(2 * tick)
	w.beat(a)
	if err := w.apply(w.wire[0]); err != nil {
		t.Fatal(err)
	}
	w.wire = nil
	for len(w.mail) > 0 { // first the late one
		w.take(a, w.mail[0])
		w.mail = w.mail[1:]
		w.rush(a)
	}
	if a.held != 3 || a.inFlight != 6 {
		t.Fatalf("it holds %d and has %d in flight", a.held, a.inFlight)
	}
	w.pass(w.params.Quarantine - 2*tick)
	w.exchange(t, b)
	w.rush(b)
	if got := w.inFlight(); got != 6 {
		t.Errorf("%d in flight, want 6", got)
	}
}

// exchange delivers the oldest command of a holder, which it sends unless one is on
// the way, and the answer.
func (w *world) exchange(t *testing.T, m *member) {
	t.Helper()
	i := slices.IndexFunc(w.wire, func(c message) bool { return c.Holder == m.name })
	if i < 0 {
		w.beat(m)
		i = len(w.wire) - 1
	}
	c := w.wire[i]
	w.wire = slices.Delete(w.wire, i, i+1)
	if err := w.apply(c); err != nil {
		t.Fatal(err)
	}
	w.receive()
}

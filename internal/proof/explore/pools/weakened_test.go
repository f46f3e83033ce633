package pools_test

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A weakening takes one rule away, of the production code or of what it needs of
// holders and leaders, and shows that the promise needed it. The shortest history that
// breaks the promise has that many steps.
type weakening struct {
	rule  string // that is taken away
	steps int
	fleet *fleet
}

// weak returns a fleet without a rule.
func weak(change func(*fleet), without func(*rules), policies ...pool.Params) *fleet {
	f := fleetOf(change, policies...)
	f.loose = true
	without(&f.rules)
	return f
}

// strict is weak where more than what is in flight is checked.
func strict(change func(*fleet), without func(*rules), policies ...pool.Params) *fleet {
	f := weak(change, without, policies...)
	f.loose = false
	return f
}

func weakenings() []weakening {
	return slices.Concat(weakHolders(), weakCoordinators(), weakenedByKey())
}

// weakHolders are weakenings of what holders do.
func weakHolders() []weakening {
	none := func(*rules) {}
	return []weakening{
		{"a share lasts from when its beat was sent", 8, weak(
			func(f *fleet) { f.late = 1 },
			func(r *rules) { r.since = func(_, received int64) int64 { return received } },
			poolOf(2, 1))},
		{"an answer is taken only if it was issued later", 14, weak(
			func(f *fleet) { f.late, f.overdue = 1, true },
			func(r *rules) { r.counts = func(*holder, pool.Grant) bool { return true } },
			poolOf(2, 2))},
		{"in a quarantine nothing more is taken than is held when the answer arrives", 13, weak(
			func(f *fleet) { f.late, f.forgets = 1, 1 },
			func(r *rules) { r.takes = func(g pool.Grant, _ int64) int64 { return g.Share } },
			poolOf(2, 2))},
		{"a holder leaves with nothing in flight", 6, weak(
			func(f *fleet) { f.leaves = true },
			func(r *rules) { r.busy = true },
			poolOf(2, 2))},
		{"a process has a name that none had before", 5, strict(
			func(f *fleet) { f.starts = 1 },
			func(r *rules) { r.sameAs = true },
			poolOf(2, 2))},
		{"a holder reports what it holds", 8, strict(
			func(f *fleet) { f.late, f.gains, f.early = 1, 2, true },
			func(r *rules) { r.altered = func(c *pool.Command) { c.Held = 0 } },
			poolOf(2, 2))},
		{"the margin covers what the coordinator's clock gains", 7, weak(
			func(f *fleet) { f.gains = 1 }, none, poolOf(2, 2))},
		{"the margin covers requests that are not aborted", 7, weak(
			func(f *fleet) { f.request = 1 }, none, poolOf(2, 2))},
		{"the margin covers both", 8, weak(
			func(f *fleet) { f.gains, f.request, f.margin = 1, 1, 1 }, none, poolOf(2, 3))},
	}
}

// weakCoordinators are weakenings of what coordinators do.
func weakCoordinators() []weakening {
	short := poolOf(2, 2)
	short.Quarantine = tick
	occupancy := poolOf(2, 2)
	occupancy.Handoff = pool.Occupancy
	return []weakening{
		{"a memory begins with a quarantine", 6, weak(
			func(f *fleet) { f.forgets = 1 },
			func(r *rules) {
				r.begin = func(term int64, _ limiter.Instant, _ pool.Params) *pool.State { return pool.New(term) }
			},
			poolOf(2, 2))},
		{"the quarantine is as long as shares live", 7, weak(
			func(f *fleet) { f.forgets = 1 }, func(*rules) {}, short)},
		{"a leader grants nothing after another began", 8, weak(
			func(f *fleet) { f.forgets = 1 }, func(r *rules) { r.lingers = true }, poolOf(2, 2))},
		{"a share that is handed over lasts as long as it did", 7, weak(
			func(f *fleet) { f.moves = 1 },
			func(r *rules) {
				r.moved = func(m pool.Memory, now limiter.Instant) (*pool.State, error) {
					return pool.Restore(m, now.Add(-tick))
				}
			},
			poolOf(2, 2))},
		{"a generation is used once", 11, strict(
			func(f *fleet) { f.late, f.gains, f.early = 1, 2, true },
			func(r *rules) { r.reuses = true },
			poolOf(2, 2))},
		{"a command that is late or repeated does not keep a share", 5, strict(
			func(f *fleet) { f.late, f.strays = 1, true },
			func(r *rules) { r.step = refreshing },
			poolOf(2, 2))},
		{"a command that is late or repeated changes nothing", 14, weak(
			func(f *fleet) { f.late, f.strays = 1, true }, func(r *rules) { r.step = replaying }, poolOf(2, 1))},
		{"a share is kept until its holder confirmed a smaller one", 10, weak(
			func(f *fleet) { f.late = 1 }, func(*rules) {}, occupancy)},
		{"what is in flight above a share is kept", 8, weak(
			func(*fleet) {}, func(r *rules) {
				r.altered = func(c *pool.Command) { c.InFlight, c.Peak = 0, 0 }
			}, poolOf(2, 2))},
	}
}

// replaying takes every command for a new one.
func replaying(s *pool.State, p pool.Params, now limiter.Instant, c pool.Command) (pool.Grant, error) {
	if r, known := after(s, now).find(c.Holder); known {
		c.Seq = max(c.Seq, r.Seq+1)
	}
	return s.Step(p, now, c)
}

// refreshing has all shares last again when a command is late or repeated.
func refreshing(s *pool.State, p pool.Params, now limiter.Instant, c pool.Command) (pool.Grant, error) {
	if r, known := after(s, now).find(c.Holder); known && c.Seq <= r.Seq {
		again, err := pool.Restore(s.Memory(), now)
		if err != nil {
			return pool.Grant{}, err
		}
		*s = *again
	}
	return s.Step(p, now, c)
}

// TestEveryRuleIsNeeded prints a shortest history that breaks the promise without
// the rule.
func TestEveryRuleIsNeeded(t *testing.T) {
	for _, w := range weakenings() {
		t.Run(w.rule, func(t *testing.T) {
			t.Parallel()
			explore.RefuteIn(t, w.fleet.model(), w.steps)
		})
	}
}

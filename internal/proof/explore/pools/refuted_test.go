package pools_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// A refuted rule says what to keep in reserve for a holder, and does not suffice. By it the
// published model has that many states, and that many requests in flight at worst. The
// shortest history with more in flight than the limit has that many steps.
type refuted struct {
	rule   string
	config string // in spec/
	found
	grants int // to a holder; 0 when beats take no time
	params pool.Params
	rules  handoffRules
}

func refutedRules() []refuted {
	occupancy := fixed(4)
	occupancy.Handoff = pool.Occupancy
	idle := func(c *pool.Command, _ node) { c.InFlight, c.Peak = 0, 0 }
	atLeastShare := func(c *pool.Command, v node) {
		if c.Op == pool.Beat {
			c.InFlight = max(c.InFlight, v.at(v.acked).share)
			c.Peak = c.InFlight
		}
	}
	return []refuted{
		{
			rule:   "the share, when beats take no time",
			config: "GaleHeartbeatLeasing-2-4-sharesonly",
			found:  found{64, 6, 9}, params: occupancy,
			rules: handoffRules{altered: idle},
		},
		{
			rule:   "the share, and what was reported in flight",
			config: "GaleHeartbeatHandoff-2-4-2-occupancy",
			found:  found{55_300, 6, 11}, grants: 2, params: occupancy,
		},
		{
			rule:   "the share, the one that was reported, and what was reported in flight",
			config: "GaleHeartbeatHandoff-2-4-2-committed",
			found:  found{41_236, 6, 11}, grants: 2, params: occupancy,
			rules: handoffRules{altered: atLeastShare},
		},
		{
			rule:   "the largest share not confirmed superseded, without what is in flight",
			config: "GaleHeartbeatHandoff-2-4-2-grants",
			found:  found{13_810, 6, 13}, grants: 2, params: fixed(4),
			rules: handoffRules{altered: idle},
		},
		{
			rule:   "the production rule, where a report is made at two instants",
			config: "GaleHeartbeatHandoff-2-4-2-torn",
			found:  found{58_534, 6, 13}, grants: 2, params: fixed(4),
			rules: handoffRules{torn: true},
		},
	}
}

// measure searches the published model by the rule: all of it, and up to the first
// state in which more is in flight than the limit.
func (r refuted) measure(t *testing.T) found {
	t.Helper()
	if r.grants == 0 {
		altered := func(c *pool.Command) { r.rules.altered(c, node{}) }
		l := leasing{holders: 2, params: r.params, altered: altered, spare: -r.params.Max}
		f, _ := survey(t, l.model(), l.abstract, func(s leased) int64 { return sum(s.inflight) })
		l.spare = 0
		f.steps = explore.Refute(t, l.model())
		return f
	}
	h := handoff{limit: r.params.Max, grants: r.grants, params: r.params, rules: r.rules, spare: -r.params.Max}
	h.rules.loose = true
	f, _ := survey(t, h.model(), h.abstract, func(s handed) int64 { return s.nodes[0].inflight + s.nodes[1].inflight })
	h.spare = 0
	f.steps = explore.Refute(t, h.model())
	return f
}

func TestOtherReservesDoNotSuffice(t *testing.T) {
	for _, r := range refutedRules() {
		t.Run(r.rule, func(t *testing.T) {
			t.Parallel()
			if got := r.measure(t); got != r.found {
				t.Errorf("%+v, want %+v", got, r.found)
			}
		})
	}
}

package pools_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// here is where the figures are found.
const here = pages.Source("internal/proof/explore/pools")

// TestPageShowsTheFigures compares the page with what the other tests pin.
func TestPageShowsTheFigures(t *testing.T) {
	here.Shows(t, pages.FormalModel, "figures of pools", tables())
}

func tables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("### The published models of pools\n")
	line("| model | holders | limit | grants to a holder | states | most in flight | steps to it |")
	line("|---|---|---|---|---|---|---|")
	for _, l := range leasings {
		model := "beats that take no time, equal split"
		if l.allocation == pool.DemandProportional {
			model = "beats that take no time, by demand"
		}
		line("| %s | %d | %d | | %d | %d | %d |", model, l.holders, l.limit, l.states, l.most, l.steps)
	}
	for _, h := range handoffs {
		line("| beats that take any time | 2 | %d | %d | %d | %d | %d |", h.limit, h.grants, h.states, h.most, h.steps)
	}

	line("\n### Other reserves, with 2 holders and limit 4\n")
	line("| what is kept for a holder: the most of | states | most in flight | steps to more than the limit |")
	line("|---|---|---|---|")
	for _, r := range refutedRules() {
		line("| %s | %d | %d | %d |", r.rule, r.states, r.most, r.steps)
	}

	line("\n### The models of pools beyond them\n")
	line("| model | steps of the shortest history that has all in flight that may be |")
	line("|---|---|")
	for _, m := range models() {
		line("| %s | %d |", m.name, m.steps)
	}

	line("\n### The rules of pools, each taken away\n")
	line("| rule | steps of the shortest history that breaks the promise without it |")
	line("|---|---|")
	for _, w := range weakenings() {
		line("| %s | %d |", w.rule, w.steps)
	}
	return b.String()
}

// TestSpecsExpectWhatTheSearchFinds has TLC and the search agree: a configuration
// in spec/ expects as many states as the production code reaches.
func TestSpecsExpectWhatTheSearchFinds(t *testing.T) {
	want := map[string]int{}
	for _, l := range leasings {
		if l.config != "" {
			want["GaleHeartbeatLeasing-"+l.config] = l.states
		}
	}
	for _, h := range handoffs {
		want[fmt.Sprintf("GaleHeartbeatHandoff-2-%d-%d", h.limit, h.grants)] = h.states
	}
	for _, r := range refutedRules() {
		want[r.config] = r.states
	}
	here.Agree(t, want)
}

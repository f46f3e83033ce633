package pools_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

var update = flag.Bool("update", false, "write the figures into docs/formal-model.md")

const (
	page       = "../../../docs/formal-model.md"
	figuresAre = "<!-- figures of pools: go test ./internal/explore/pools -run TestPageTellsTheFigures -update -->\n"
	figuresEnd = "<!-- end of figures of pools -->\n"
)

// TestPageTellsTheFigures compares the page with what the other tests pin.
func TestPageTellsTheFigures(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), figuresAre)
	told, after, ended := strings.Cut(rest, figuresEnd)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", page, figuresAre, figuresEnd)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+figuresAre+tables()+figuresEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(tables(), told); diff != "" {
		t.Errorf("%s tells other figures (-want +got); run the command in its comment:\n%s", page, diff)
	}
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
	for name, states := range want {
		text, err := os.ReadFile(filepath.Join("../../../spec", name+".cfg"))
		if err != nil {
			t.Error(err)
			continue
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if expect := fmt.Sprintf(`\* expect %d states`, states); first != expect {
			t.Errorf("%s begins with %q, want %q", name, first, expect)
		}
	}
}

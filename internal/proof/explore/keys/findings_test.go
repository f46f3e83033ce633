package keys_test

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
)

// publishedModels are the configurations of the module, and what TLC and the search find.
func publishedModels() []finding {
	small := func(change func(*published)) published {
		p := published{keys: 2, regions: 1, limit: 2, batch: 1, block: 1, own: 1, changes: 1}
		change(&p)
		return p
	}
	return []finding{
		{"", "one key that is counted by itself, and one more", small(func(*published) {}), 1518, ""},
		{"", "two keys more, which share a counter", small(func(p *published) { p.keys = 3 }), 12196, ""},
		{"", "three memories", small(func(p *published) { p.changes = 2 }), 16621, ""},
		{"", "two regions", small(func(p *published) { p.regions = 2 }), 4032, ""},
		{"", "blocks and batches of two units", small(func(p *published) { p.limit, p.batch, p.block, p.own = 4, 2, 2, 2 }), 1603, ""},
		{"-together", "two keys of one group", small(func(p *published) { p.own, p.together = 2, true }), 330, ""},

		{"-tight", "a limit that is lower by one", small(func(p *published) { p.spare = 1 }), 0, "OvershootTight"},
		{"-forfeit", "a crash forfeits less than a block of each counter", small(func(p *published) { p.forfeit = 1 }), 0, "ForfeitTight"},
		{"-forgets", "the record is not read", small(func(p *published) { p.forgets = true }), 0, "Overshoot"},
		{"-overtaken", "a memory that was overtaken counts its own writes", small(func(p *published) { p.overtaken = true }), 0, "Overshoot"},
		{"-lowers", "a write forgets the marks of those before", small(func(p *published) { p.own, p.lowers = 2, true }), 0, "Overshoot"},
		{"-unnoted", "a shared counter is granted before the record says that there is one", small(func(p *published) { p.changes, p.unnoted = 2, true }), 0, "Overshoot"},
		{"-apart", "the other counter that a key may have had does not count", small(func(p *published) { p.apart = true }), 0, "Overshoot"},
	}
}

// A finding is a configuration, and what is found.
type finding struct {
	suffix string // of its name
	what   string
	of     published
	states int    // 0 when a promise is broken
	breaks string // the invariant
}

// config returns the name of the configuration.
func (f *finding) config() string {
	p := &f.of
	return fmt.Sprintf("GaleKeyedBlocks-%d-%d-%d-%d-%d-%d-%d%s", p.keys, p.regions, p.limit, p.batch, p.block, p.own, p.changes, f.suffix)
}

// expected returns what TLC is expected to find.
func (f *finding) expected() string {
	if f.breaks != "" {
		return f.breaks + " violated"
	}
	return fmt.Sprint(f.states, " states")
}

func TestPublishedStatesAreReached(t *testing.T) {
	for _, f := range publishedModels() {
		t.Run(f.config(), func(t *testing.T) {
			r, err := explore.Search(f.of.model(), nil)
			switch {
			case err != nil:
				t.Fatal(err)
			case (r.Counterexample != nil) != (f.breaks != ""):
				t.Errorf("want %s:\n%v", f.expected(), r.Counterexample)
			case r.Counterexample == nil && r.States != f.states:
				t.Errorf("%d states, want %d", r.States, f.states)
			}
		})
	}
}

// TestSpecsExpectWhatTheSearchFinds has TLC and the search agree.
func TestSpecsExpectWhatTheSearchFinds(t *testing.T) {
	for _, f := range publishedModels() {
		if got, want := here.Expected(t, f.config()), f.expected(); got != want {
			t.Errorf("%s expects %q, want %q", f.config(), got, want)
		}
	}
}

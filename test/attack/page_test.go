package main

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/attacks.md")

const page = "../../docs/attacks.md"

// TestThePageIsTheRows compares the page with the rows.
func TestThePageIsTheRows(t *testing.T) {
	want := render(groups())
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s says something else than the rows (-rows +page); run go test ./test/attack -update:\n%s", page, diff)
	}
}

// TestEveryRowIsJudged finds rows of one name, and rows that nothing can fail.
func TestEveryRowIsJudged(t *testing.T) {
	for _, g := range groups() {
		names := map[string]bool{}
		for _, r := range g.rows {
			if names[r.name] {
				t.Errorf("%s: %s is two rows", g.name, r.name)
			}
			names[r.name] = true
			if r.must.words == "" || r.must.judge("nothing that any row wants") == nil {
				t.Errorf("%s: %s is not judged", g.name, r.name)
			}
		}
	}
}

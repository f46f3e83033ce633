package pages_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
)

const here = pages.Source("internal/proof/explore/pages")

// TestPageShowsTheFigures compares what no search finds: the page shows what the
// configurations of the journal expect of TLC, and each of them is shown.
func TestPageShowsTheFigures(t *testing.T) {
	const module = "GaleJournal"
	files, err := filepath.Glob("../../../../spec/" + module + "-*.cfg")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no configurations: %v", module, err)
	}
	table := "\n| configuration | TLC has to find |\n|---|---|\n"
	for _, file := range files {
		config := strings.TrimSuffix(filepath.Base(file), ".cfg")
		table += fmt.Sprintf("| `%s` | %s |\n", config, here.Expected(t, config))
	}
	here.Shows(t, "spec/README.md", "figures of the journal", table+"\n")
}

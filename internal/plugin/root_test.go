package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/docs"
)

// TestDocumentedCommands parses the commands of kubectl weir that the pages have.
func TestDocumentedCommands(t *testing.T) {
	pages, err := docs.Pages(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range pages {
		for _, c := range p.Commands() {
			args := c.Words[1:]
			if c.Words[0] == "kubectl" && args[0] == "weir" {
				args = args[1:]
			} else if c.Words[0] != "kubectl-weir" {
				continue
			}
			found++
			root := newRoot()
			root.InitDefaultCompletionCmd()
			command, rest, err := root.Find(args)
			if err == nil {
				err = command.ParseFlags(rest)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", p.At(c.Line), strings.Join(c.Words, " "), err)
			}
		}
	}
	if found < 5 {
		t.Errorf("the pages have %d commands of kubectl weir", found)
	}
}

func TestDocumentedFlags(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	for commands := newRoot().Commands(); len(commands) > 0; commands = commands[1:] {
		command := commands[0]
		commands = append(commands, command.Commands()...)
		command.InitDefaultHelpFlag()
		if want := "```\n" + command.UsageString() + "```\n"; !strings.Contains(string(page), want) {
			t.Errorf("docs/reference/flags.md lacks:\n%s", want)
		}
	}
}

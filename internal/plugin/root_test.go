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
			root.InitDefaultVersionFlag()
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

// TestWrongCallsNameTheRightOnes: an error says how the command is used.
func TestWrongCallsNameTheRightOnes(t *testing.T) {
	for want, args := range map[string][]string{
		"use: kubectl weir explain POD --request": {"explain", "--request", "GET /"},
		"use: kubectl weir status":                {"status", "checkout"},
		"use: kubectl weir budget join FEDERATED": {"budget", "join", "--member", "a", "--endpoint", "a:1"},
		`no command "nope": use status or join`:   {"budget", "nope"},
		"there is no kubeconfig: name one":        {"status", "--kubeconfig", fileOf(t, "")},
	} {
		if _, _, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
}

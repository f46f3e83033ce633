// Command words checks the wording of comments, messages and documentation.
//
//	go run ./hack/words [DIRECTORY]
//
// It counts turns of phrase that make texts hard to read (habits) in the comments of Go,
// Lua and SQL, in the sentences among Go's string literals, and in Markdown, and fails when
// one of them occurs more than twice in 10,000 words of its kind of text, or when a word
// occurs that docs/glossary.md lists as not to be used. It then lists every place. Generated
// files are left out, and of Markdown what is code.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// most is how often a habit may occur in 10,000 words, as in well-kept projects.
const most = 2

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	bad, err := check(dir, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	}
	if bad {
		os.Exit(1)
	}
}

// check writes how often the habits occur below a directory, and the places of those that
// occur too often. It reports whether there are any.
func check(dir string, out io.Writer) (bad bool, err error) {
	texts, err := read(dir)
	if err != nil {
		return false, err
	}
	avoided, err := glossary(dir)
	if err != nil {
		return false, err
	}
	for _, kind := range []string{comments, messages, documents} {
		words := 0
		for _, t := range texts[kind] {
			words += t.words()
		}
		fmt.Fprintf(out, "%s: %d words\n", kind, words)
		for _, h := range slices.Concat(habits, avoided) {
			bad = h.show(texts[kind], words, out) || bad
		}
	}
	return bad, nil
}

// show writes how often a habit occurs in texts of that many words, and where if that is too
// often, which it reports.
func (h *habit) show(texts []text, words int, out io.Writer) (bad bool) {
	var places []string
	for _, t := range texts {
		for _, place := range h.find(t.text) {
			places = append(places, t.at+": "+place)
		}
	}
	allowed := most * words / 10_000
	if h.never {
		allowed = 0
	} else {
		fmt.Fprintf(out, "  %-28s %3d, at most %d\n", h.name, len(places), allowed)
	}
	if len(places) <= allowed {
		return false
	}
	fmt.Fprintf(out, "  too often: %s; %s\n", h.name, h.say)
	for _, place := range places {
		fmt.Fprintf(out, "    %s\n", place)
	}
	return true
}

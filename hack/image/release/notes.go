package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// sources is where the notes link to files of the repository: a page of releases has none beside it.
const sources = "https://github.com/weir-dev/weir/blob/"

// behind matches what `git describe` prints of commits behind a tag, whose section has none of
// their changes.
var behind = regexp.MustCompile(`-\d+-g[0-9a-f]+(-dirty)?$`)

// notes writes what the changelog says of the version.
func (r *release) notes(context.Context, []build) error {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	title, _, candidate := strings.Cut(strings.TrimPrefix(r.version, "v"), "-")
	ref := r.version
	section, err := sectionOf(string(text), title)
	if candidate {
		ref = "main" // it needs no tag
		if err != nil || behind.MatchString(r.version) {
			section, err = sectionOf(string(text), "Unreleased")
		}
	}
	if err != nil {
		return fmt.Errorf("CHANGELOG.md: %w", err)
	}
	return os.WriteFile(filepath.Join(r.out, "notes.md"), []byte(linked(unwrapped(section), ref)), 0o644)
}

// wrapped matches a break within a paragraph or an item of a list.
var wrapped = regexp.MustCompile(`([^\n])\n *([^\s#|*-])`)

// unwrapped has each paragraph and each item in a line of its own: the page of a release shows
// every break. The text has no blocks of code.
func unwrapped(text string) string { return wrapped.ReplaceAllString(text, "$1 $2") }

// inside matches links to files, which have no colon.
var inside = regexp.MustCompile(`\]\(([^):]+)\)`)

// linked has links to files of the repository name those of a version.
func linked(text, ref string) string {
	return inside.ReplaceAllString(text, "]("+sources+ref+"/${1})")
}

// sectionOf returns the text below a heading of the second level that begins with title.
func sectionOf(text, title string) (string, error) {
	var section []string
	in := false
	for line := range strings.Lines(text) {
		heading, ok := strings.CutPrefix(line, "## ")
		switch {
		case !ok && in:
			section = append(section, line)
		case ok && in:
			return tidy(section, title)
		case ok:
			word, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			in = word == title
		}
	}
	if !in {
		return "", fmt.Errorf("there is no section %q: add it, with the changes of the release", "## "+title)
	}
	return tidy(section, title)
}

func tidy(section []string, title string) (string, error) {
	text := strings.TrimSpace(strings.Join(section, ""))
	if text == "" {
		return "", fmt.Errorf("the section %q is empty: say what the release changes", "## "+title)
	}
	return text + "\n", nil
}

// checksums writes the SHA-256 of every file of the release, as sha256sum reads them.
func (r *release) checksums(context.Context, []build) error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	if sums.Len() == 0 {
		return errors.New("there are no files")
	}
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(sums.String()), 0o644)
}

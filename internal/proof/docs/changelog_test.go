package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	released = regexp.MustCompile(`^((\d+\.\d+)\.\d+) \(\d{4}-\d\d-\d\d\)$`)
	numbered = regexp.MustCompile(`(?m)^ *"?version"?(?:: | = )"?(\d+\.\d+\.\d+)\b`)
)

// TestChangelog: the notes of a release, or of a candidate, are a section with a title of that
// form, and with text.
func TestChangelog(t *testing.T) {
	titles := map[string]bool{}
	for i, section := range changelog(t) {
		title, text, _ := strings.Cut(section, "\n")
		if i == 0 != (title == "Unreleased") || i > 0 && !released.MatchString(title) {
			t.Errorf("section %d is called %q, want Unreleased and below it those like 0.1.0 (2026-11-30)", i, title)
		}
		if strings.TrimSpace(text) == "" || titles[title] {
			t.Errorf("the section %q is empty, or there twice", title)
		}
		titles[title] = true
	}
}

// TestNewestRelease: all that has its version in the tree has the one of the changelog's newest
// section, and the protocol of its minor version is kept.
func TestNewestRelease(t *testing.T) {
	title, _, _ := strings.Cut(changelog(t)[1], "\n")
	newest := released.FindStringSubmatch(title)
	if newest == nil {
		t.Fatalf("the section %q has no version", title)
	}
	for _, file := range []string{"charts/weir/Chart.yaml", "clients/node/package.json", "clients/python/pyproject.toml"} {
		if m := numbered.FindSubmatch(read(t, filepath.Join(root, filepath.FromSlash(file)))); m == nil || string(m[1]) != newest[1] {
			t.Errorf("%s has the version %q, want %s", file, m, newest[1])
		}
	}
	if _, err := os.Stat(filepath.Join(root, "hack", "protocol", "v"+newest[2]+".binpb")); err != nil {
		t.Errorf("%v: write it as hack/verify.sh says", err)
	}
	for page, commands := range map[string][]string{
		"README.md": {"--branch v", "make release VERSION=v", "/charts/weir --version "}, "docs/install.md": {"--branch v", "make release VERSION=v"},
		"charts/weir/README.md": {"/charts/weir --version ", "images.controller.tag=v"},
	} {
		text := string(read(t, filepath.Join(root, filepath.FromSlash(page))))
		for _, command := range commands {
			if !regexp.MustCompile(regexp.QuoteMeta(command+newest[1]) + `[^.\d-]`).MatchString(text) {
				t.Errorf("%s has no command with %s%s", page, command, newest[1])
			}
		}
	}
}

// changelog returns the sections of the changelog, each with its title in front.
func changelog(t *testing.T) []string {
	t.Helper()
	sections := strings.Split(string(read(t, filepath.Join(root, "CHANGELOG.md"))), "\n## ")[1:]
	if len(sections) < 2 {
		t.Fatalf("the changelog has %d sections, want Unreleased and that of a version", len(sections))
	}
	return sections
}

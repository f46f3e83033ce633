package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSectionOf(t *testing.T) {
	const log = "# Changelog\n\n## Unreleased\n\nNew.\n\n### Limits\n\n- One.\n\n## 0.2.0 (2026-12-01)\n\n## 0.1.0\n\nFirst.\n"
	for title, tt := range map[string]struct{ want, wrong string }{
		"Unreleased": {want: "New.\n\n### Limits\n\n- One.\n"},
		"0.1.0":      {want: "First.\n"},
		"0.2.0":      {wrong: `the section "## 0.2.0" is empty`},
		"0.3.0":      {wrong: `there is no section "## 0.3.0"`},
		"0.1":        {wrong: `there is no section "## 0.1"`},
	} {
		got, err := sectionOf(log, title)
		if got != tt.want || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("of %s: %q, %v; want %q, %q", title, got, err, tt.want, tt.wrong)
		}
	}
}

func TestLinked(t *testing.T) {
	const text = "See [a](docs/a.md#b), [`c`](c) and [d](https://example.com/d).\n"
	want := "See [a](https://github.com/weir-dev/weir/blob/v0.1.0/docs/a.md#b), [`c`](https://github.com/weir-dev/weir/blob/v0.1.0/c) and [d](https://example.com/d).\n"
	if got := linked(text, "v0.1.0"); got != want {
		t.Errorf("linked = %q, want %q", got, want)
	}
}

// TestNotesOfACandidate: of its version, or of Unreleased while that has no section.
func TestNotesOfACandidate(t *testing.T) {
	source, out := t.TempDir(), t.TempDir()
	const log = "# Changelog\n\n## Unreleased\n\nNothing yet.\n\n## 0.1.0 (2026-11-30)\n\nFirst, see [a](a.md).\n"
	if err := os.WriteFile(filepath.Join(source, "CHANGELOG.md"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		"v0.1.0":                  "First, see [a](" + sources + "v0.1.0/a.md).\n",
		"v0.1.0-rc.1":             "First, see [a](" + sources + "main/a.md).\n",
		"v0.2.0-rc.1":             "Nothing yet.\n",
		"v0.1.0-12-gabc1234":      "Nothing yet.\n",
		"v0.1.0-2-g1234567-dirty": "Nothing yet.\n",
	} {
		r := &release{version: version, source: source, out: out}
		if err := r.notes(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := text(t, filepath.Join(out, "notes.md")); got != want {
			t.Errorf("the notes of %s are %q, want %q", version, got, want)
		}
	}
	if err := (&release{version: "v0.2.0", source: source, out: out}).notes(t.Context(), nil); err == nil {
		t.Error("a version without a section has notes")
	}
}

func TestUnwrapped(t *testing.T) {
	const text = "One,\ntwo.\n\n### Three\n\nFour\n`five`.\n\n- Six\n  [seven](a.md).\n- Eight.\n\n| nine |\n|---|\n| ten |\n"
	const want = "One, two.\n\n### Three\n\nFour `five`.\n\n- Six [seven](a.md).\n- Eight.\n\n| nine |\n|---|\n| ten |\n"
	if got := unwrapped(text); got != want {
		t.Errorf("unwrapped = %q, want %q", got, want)
	}
}

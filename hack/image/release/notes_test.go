package main

import (
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

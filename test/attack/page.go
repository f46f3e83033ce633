package main

import (
	"fmt"
	"strings"
)

const introduction = `# Attacks, and what follows

This page is rendered from the rows in ` + "`test/attack`" + `; do not edit it, run ` + "`go test ./test/attack -update`" + `.

` + "`make attack`" + ` plays all %d attacks against the real system: an API server with its webhooks, a controller and sidecars, each as a
process in a cgroup with the memory of its container. ` + "`make test`" + ` plays the %d that take no longer than a moment. Each row says who
attacks, what they do and what must be so after it. After every row the judge also looks whether a process was started again, took
more than 85 %% of its memory, and whether pods of another tenant are admitted, with a sidecar and in 2.5 s. That tenant's limit has to be
admitted exactly in every window meanwhile: at most all of it, and at least nine tenths.

[Security](../SECURITY.md) lists what these attackers can do and what they cannot. Pods run as processes here, so nothing on this
page depends on a kubelet or a NetworkPolicy, and no row shows what these keep away.
`

// render returns the page.
func render(all []group) string {
	rows, short := 0, 0
	for _, g := range all {
		rows += len(g.rows)
		for _, r := range g.rows {
			if !r.long {
				short++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, introduction, rows, short)
	for _, g := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%d attacks; `make attack ATTACK_GROUPS=%s` plays these alone.\n\n| attack | by | what must be so |\n|---|---|---|\n", g.title, len(g.rows), g.name)
		for _, r := range g.rows {
			mark := ""
			if r.long {
				mark = " *"
			}
			fmt.Fprintf(&b, "| %s%s | %s | %s |\n", cell(r.name), mark, r.as, cell(r.must.words))
		}
	}
	b.WriteString("\n\\* not in `make test`\n")
	return b.String()
}

// cell is a text in a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "\n", " ").Replace(text)
}

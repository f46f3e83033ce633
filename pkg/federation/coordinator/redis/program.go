package redis

import "embed"

// The parts of the scripts. Those of State are named after the files of
// pkg/federation/ledger.
//
//go:embed lua
var lua embed.FS

// stepFiles are those of Step, in order.
var stepFiles = []string{"wire", "memory", "vouch", "account", "slices", "window", "share", "lease", "report", "step"}

// parts returns files of lua/.
func parts(names ...string) []string {
	var texts []string
	for _, name := range names {
		text, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // it is part of the binary
		}
		texts = append(texts, string(text))
	}
	return texts
}

// suffixes are how the names of a budget's keys end: it has one.
var suffixes = []string{""}

package redis

import "embed"

// The parts of the script. Those of State are named after the files of pkg/concurrency/pool.
//
//go:embed lua
var lua embed.FS

// programs returns the parts in order.
func programs() []string {
	var texts []string
	for _, name := range []string{"wire", "memory", "account", "slots", "step"} {
		text, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // it is part of the binary
		}
		texts = append(texts, string(text))
	}
	return texts
}

// suffixes are how the names of a pool's keys end, in the order of lua/wire.lua.
var suffixes = []string{"", ":expiries", ":opinions", ":hungry"}

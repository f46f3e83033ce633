package redis

import "embed"

// The parts of the script. Those of State are named after the files of
// pkg/federation/escrow.
//
//go:embed lua
var lua embed.FS

// programs returns the parts in order.
func programs() []string {
	var texts []string
	for _, name := range []string{"wire", "memory", "state", "take", "coordinate", "step"} {
		text, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // it is part of the binary
		}
		texts = append(texts, string(text))
	}
	return texts
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/weir-dev/weir/hack/kind/machine"
)

// boundFile rewrites a file of the OCI runtime specification in place.
func boundFile(path string, held machine.Capabilities) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	bounded, err := bound(content, held)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, bounded, 0o600)
}

// bound removes from a container's configuration, or from that of one process,
// the capabilities that are not held. Everything else stays as it is.
func bound(content []byte, held machine.Capabilities) ([]byte, error) {
	var document map[string]any
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber() // limits exceed what a float holds
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	process := document
	if of, isContainer := document["process"].(map[string]any); isContainer {
		process = of
	}
	sets, _ := process["capabilities"].(map[string]any)
	for kind, set := range sets {
		asked, _ := set.([]any)
		sets[kind] = keep(asked, held)
	}
	return json.Marshal(document)
}

func keep(asked []any, held machine.Capabilities) []any {
	kept := []any{}
	for _, capability := range asked {
		if name, ok := capability.(string); ok && held.Has(name) {
			kept = append(kept, name)
		}
	}
	return kept
}

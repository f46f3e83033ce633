// Command dashboards writes the Grafana dashboards of config/monitoring, one for each kind
// of reader.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "config/monitoring", "`directory` for the dashboards")
	flag.Parse()
	if err := write(*out, platform(), team(), capacity()); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func write(dir string, boards ...board) error {
	for _, b := range boards {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // queries compare
		encoder.SetIndent("", " ")
		if err := encoder.Encode(b.grafana()); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, b.uid+".json"), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

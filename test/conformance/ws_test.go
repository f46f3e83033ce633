package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWebSocketPackage plays the cases of testdata/ws, in which both ends are the package ws of npm.
func TestWebSocketPackage(t *testing.T) {
	const suite = "WebSocket, by the package ws"
	dir := filepath.Join("testdata", "ws")
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "suite.mjs"))
	var said bytes.Buffer
	cmd.Stderr = &said
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("node: %v", err)
	}
	t.Cleanup(func() {
		_ = to.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(from)
	if !lines.Scan() {
		_ = cmd.Wait()
		t.Fatalf("run npm ci --prefix test/conformance/%s, as make test-conformance does: %s", dir, said.String())
	}
	app := "127.0.0.1:" + lines.Text()
	for _, at := range inFrontOf(t, proxyHTTP1, func() string { return app }, func(address string) error {
		_, err := websocketCases()[0].play(t.Context(), address)
		return err
	}) {
		if _, err := fmt.Fprintln(to, at.address); err != nil || !lines.Scan() {
			t.Fatalf("%s: the suite has ended (%v): %s", at.name, err, said.String())
		}
		var result struct {
			Failed []string
			Of     int
		}
		if err := json.Unmarshal(lines.Bytes(), &result); err != nil {
			t.Fatal(err)
		}
		note(suite, at.name, result.Of-len(result.Failed), result.Of)
		if at.isOurs() || at.name == direct {
			for _, failed := range result.Failed {
				t.Errorf("%s: %s", at.name, failed)
			}
		}
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestFilesAreCurrent: config/monitoring has what this program writes.
func TestFilesAreCurrent(t *testing.T) {
	dir := t.TempDir()
	boards := []board{platform(), team(), capacity()}
	if err := write(dir, boards...); err != nil {
		t.Fatal(err)
	}
	for _, b := range boards {
		want, err := os.ReadFile(filepath.Join(dir, b.uid+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../config/monitoring", b.uid+".json"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("config/monitoring/%s.json is stale (%v): run `make generate`", b.uid, err)
		}
	}
}

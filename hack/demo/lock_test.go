package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecondDemoLeavesTheFirstAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".demo")
	first, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := claim(dir)
	if want := fmt.Sprintf("already running here (pid %d)", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("the second claim = %v, %v; want an error with %q", second, err, want)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the second claim touched the first one's files: %v", err)
	}

	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := claim(dir)
	if err != nil {
		t.Fatalf("claim after the first demo ended: %v", err)
	}
	defer third.Close()
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what the first demo left is still there (%v)", err)
	}
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestNoModuleIsPassedOnWithoutItsLicence: neither without a text, nor with one that nobody
// knows, be it the program's own or that of what it uses.
func TestNoModuleIsPassedOnWithoutItsLicence(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(directory string) error
		says   string
	}{
		"the program's own": {
			func(directory string) error { return os.Remove(filepath.Join(directory, "LICENSE")) },
			"example.com/echo v1 has no licence that is known among 0 files",
		},
		"another's": {
			func(directory string) error {
				if err := os.Remove(filepath.Join(directory, "dep", "user", "LICENCE.txt")); err != nil {
					return err
				}
				return os.Remove(filepath.Join(directory, "dep", "COPYING.md"))
			},
			"example.com/dep v1.2.0 has no licence that is known among 1 files", // the notice
		},
		"a text that is not a licence": {
			func(directory string) error {
				return os.WriteFile(filepath.Join(directory, "LICENSE"), []byte("Ask the author.\n"), 0o600)
			},
			"example.com/echo v1 has no licence that is known among 1 files",
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := echo(t)
			if err := tc.change(source); err != nil {
				t.Fatal(err)
			}
			args := []string{"-name", "echo", "-version", "v1", "-source", source, "-package", "./cmd/echo", "-out", t.TempDir(), "-architectures", runtime.GOARCH}
			if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want an error that says %q", err, tc.says)
			}
		})
	}
}

func TestLicencesAreIdentified(t *testing.T) {
	if ids := identify([]byte(apache(t))); len(ids) != 1 || ids[0] != "Apache-2.0" {
		t.Errorf("the licence of this repository is %q", ids)
	}
	if ids := identify([]byte("See https://www.apache.org/licenses/LICENSE-2.0.\n\n" + strings.Repeat("All rights reserved. ", 50))); len(ids) > 0 {
		t.Errorf("a text that refers to a licence is %q", ids)
	}
}

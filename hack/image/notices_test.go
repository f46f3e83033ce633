package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAProgramHasItsLicences: those of the modules that it contains on its own platform.
func TestAProgramHasItsLicences(t *testing.T) {
	source, file := echo(t), filepath.Join(t.TempDir(), "echo_windows_arm64.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", file, "./cmd/echo")
	build.Dir = source
	build.Env = (&program{system: "windows"}).environment("arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := run(t.Context(), []string{"licences", "-source", source, file}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(strings.TrimSuffix(file, ".exe") + ".licences")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nexample.com/echo LICENSE\n====", "\nexample.com/dep v1.2.0 COPYING.md\n====", "\nexample.com/dep v1.2.0 NOTICE\n====",
		"\n\nMade by Eve.\n", "\nexample.com/dep v1.2.0 user/LICENCE.txt\n====", "\nstd go1.", "Redistributions of source code must retain",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in the licences", want)
		}
	}
	if strings.Contains(string(text), "dep/unused") || strings.Contains(string(text), "authorities") {
		t.Error("there are licences of packages that the program does not contain")
	}

	if err := os.Remove(filepath.Join(source, "LICENSE")); err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), []string{"licences", "-source", source, file}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "example.com/echo  has no licence that is known") {
		t.Errorf("got %v, want an error of a licence that is missing", err)
	}
	if err := run(t.Context(), []string{"licences"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "no program is named") {
		t.Errorf("got %v, want an error without a program", err)
	}
}

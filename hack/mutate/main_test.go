package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mutate runs the command on a package below testdata and returns the lines of its output.
func mutate(t *testing.T, o options) []string {
	t.Helper()
	o.packages, o.timeout = []string{"./testdata/copies"}, cmp.Or(o.timeout, time.Minute)
	if o.match == nil {
		o.match = regexp.MustCompile("")
	}
	o.except = regexp.MustCompile("^$")
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func TestEveryCopyIsTried(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	t.Setenv("MUTATE_TEST_PID", pid)
	out := filepath.Join(t.TempDir(), "out")
	want := []string{
		"killed\ttestdata/copies/copies.go:22: Size: int(f.Size)\tTestConvert",
		"survived\ttestdata/copies/copies.go:22: Note: f.GetNote()\t",
		"killed\ttestdata/copies/copies.go:22: Weight: &f.Weight\tTestConvert",
		"killed\ttestdata/copies/copies.go:23: t.Name = f.Name\tTestConvert",
		"survived\ttestdata/copies/copies.go:23: t.Depth = f.Inner.Depth\t",
		"not reached\ttestdata/copies/copies.go:27: Name: f.Name\t",
	}
	got := mutate(t, options{out: out, match: regexp.MustCompile(`copies.go:2[0-7]`)})
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if runtime.GOOS == "linux" {
		text, err := os.ReadFile(pid)
		if err != nil {
			t.Fatal(err)
		}
		left, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		if running(left) {
			_ = syscall.Kill(left, syscall.SIGKILL)
			t.Error("a process that a test left behind runs on")
		}
	}
}

// running reports whether a process runs: one that ended may wait for its parent to see it.
func running(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestMutantsOfTheOutputAreNotRunAgain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	before := "survived\ttestdata/copies/copies.go:22: Note: f.GetNote()\tby hand"
	if err := os.WriteFile(out, []byte(before+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := mutate(t, options{out: out, match: regexp.MustCompile(`:22: (Note|Size)`)})
	if want := "killed\ttestdata/copies/copies.go:22: Size: int(f.Size)\tTestConvert"; len(got) != 2 || got[0] != before || got[1] != want {
		t.Errorf("the output is %q", got)
	}
}

// TestATimeOutIsNotAKill leaves out a copy that a test waits for.
func TestATimeOutIsNotAKill(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	got := mutate(t, options{out: out, match: regexp.MustCompile("Turns"), timeout: 10 * time.Second})
	if want := "timed out\ttestdata/copies/copies.go:29: Twice: f.Inner.Turns\t"; len(got) != 1 || got[0] != want {
		t.Errorf("the output is %q, want %q", got, want)
	}
}

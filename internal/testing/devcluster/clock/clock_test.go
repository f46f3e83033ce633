package clock

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAnEraRunsEvenly(t *testing.T) {
	from := time.Unix(1000, 0)
	e := Era{From: from, Offset: time.Minute, PPB: -150_000}
	for after, want := range map[time.Duration]time.Duration{
		0:                 time.Minute,
		10 * time.Second:  time.Minute - 1500*time.Microsecond,
		-10 * time.Second: time.Minute + 1500*time.Microsecond,
	} {
		if got := e.At(from.Add(after)).Sub(from.Add(after)); got != want {
			t.Errorf("after %s the clock is off by %s, want %s", after, got, want)
		}
	}
}

func TestAStepBeginsAnEra(t *testing.T) {
	c := newClock(t, time.Hour)
	c.Step(-2 * time.Hour)
	eras := c.Eras()
	if len(eras) != 2 || eras[0].Offset != time.Hour || eras[1].Offset != -time.Hour {
		t.Errorf("eras %+v", eras)
	}
	if got := c.Offset(); got != -time.Hour {
		t.Errorf("the clock is off by %s", got)
	}
}

// programs read a clock each in a way of their own and print it in nanoseconds.
func programs(t *testing.T, c *Clock) map[string]func() *exec.Cmd {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	const text = "package main\n\nimport (\n\t\"fmt\"\n\t\"time\"\n)\n\nfunc main() { fmt.Println(time.Now().UnixNano()) }\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ours, err := Program(t.Context(), ".", source, dir, "main")
	if err != nil {
		t.Fatal(err)
	}
	script, err := c.At(ours, dir, "script")
	if err != nil {
		t.Fatal(err)
	}
	library, err := Library(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	with := func(environment []string, name string, args ...string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.CommandContext(context.Background(), name, args...)
			cmd.Env = append(os.Environ(), environment...)
			return cmd
		}
	}
	return map[string]func() *exec.Cmd{
		"Go":       with(c.Environment(), ours),
		"a script": with(nil, script),
		"C":        with(append(c.Environment(), library), "date", "+%s%N"),
	}
}

func TestProgramsReadTheClock(t *testing.T) {
	c := newClock(t, 0)
	all := programs(t, c)
	for _, by := range []time.Duration{0, 90*time.Minute + 700*time.Millisecond, -time.Hour, -50 * time.Hour} {
		c.Step(by)
		for name, program := range all {
			before := time.Now().Add(c.Offset())
			out, err := program().Output()
			if err != nil {
				t.Fatal(name, err)
			}
			after := time.Now().Add(c.Offset())
			nanos, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
			if err != nil {
				t.Fatal(name, err)
			}
			if got := time.Unix(0, nanos); got.Before(before) || got.After(after) {
				t.Errorf("%s reads %s, want one from %s to %s", name, got, before, after)
			}
		}
	}
}

func newClock(t *testing.T, offset time.Duration) *Clock {
	c, err := New(filepath.Join(t.TempDir(), "clock"), offset, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

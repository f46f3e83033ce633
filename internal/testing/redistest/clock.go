package redistest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// A Clock is the clock of the day of a server that is started with it.
type Clock struct {
	t    testing.TB
	file string // holds by how many seconds it is ahead of the machine's
	shim string
}

// NewClock builds a clock that shows the machine's time. It needs a C compiler.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	dir := t.TempDir()
	c := &Clock{t: t, file: filepath.Join(dir, "shift"), shim: filepath.Join(dir, "clock.so")}
	source := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-o", c.shim, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v; it is needed to shift a server's clock\n%s", err, out)
	}
	c.Set(0)
	return c
}

// Set sets the clock to be ahead of the machine's by d, a number of seconds that may
// be negative.
func (c *Clock) Set(d time.Duration) {
	c.t.Helper()
	next := c.file + ".next"
	if err := os.WriteFile(next, strconv.AppendInt(nil, int64(d/time.Second), 10), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(next, c.file); err != nil {
		c.t.Fatal(err)
	}
}

// Start is the function of this name, of a server that reads the clock.
func (c *Clock) Start(args ...string) *Server {
	c.t.Helper()
	s := newServer(c.t)
	s.env = []string{"LD_PRELOAD=" + c.shim, "SHIFT=" + c.file}
	return s.start(args...)
}

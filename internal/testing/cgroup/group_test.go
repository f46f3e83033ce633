package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asKeeper makes the test's program keep a number of bytes that is its value, until its
// standard input ends.
const asKeeper = "CGROUP_TEST_KEEP"

func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv(asKeeper)); err == nil {
		kept := []byte(strings.Repeat("x", n))
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(int(kept[n-1]) - 'x')
	}
	os.Exit(m.Run())
}

// TestAGroupIsLimited has a program keep less and more than its group allows.
func TestAGroupIsLimited(t *testing.T) {
	const limit = 64 << 20
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		kept   int64
		killed bool
	}{{8 << 20, false}, {128 << 20, true}} {
		g, err := New(fmt.Sprintf("weir-cgroup-test-%d", os.Getpid()), limit)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EROFS) {
			t.Skip("no group can be made here:", err)
		} else if err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), "sh", "-c", g.Enter()+"\nexec "+self)
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", asKeeper, tc.kept))
		end, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		n, _ := out.Read(make([]byte, 8))
		if killed := n == 0; killed != tc.killed {
			t.Errorf("%d bytes kept: killed: %t, want %t", tc.kept, killed, tc.killed)
		}
		if n > 0 {
			if used, err := g.WorkingSet(); err != nil || used < tc.kept || used > limit {
				t.Errorf("%d bytes kept: %d are in use, error %v", tc.kept, used, err)
			}
		}
		if kills, err := g.Kills(); err != nil || (kills > 0) != tc.killed {
			t.Errorf("%d bytes kept: %d kills, error %v", tc.kept, kills, err)
		}
		_ = end.Close()
		_ = c.Wait()
		g.Remove()
		if _, err := os.Stat(g.dir); err == nil {
			t.Errorf("%s is still there", g.dir)
		}
	}
}

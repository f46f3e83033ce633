package servers_test

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// TestACrashEndsEveryProcess and a pause stops every one, also those of Postgres that have groups of their own.
func TestACrashEndsEveryProcess(t *testing.T) {
	t.Parallel()
	s, err := servers.Postgres(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	children := s.Children()
	if len(children) == 0 {
		t.Fatal("a Postgres has no processes but one")
	}
	s.SignalAll(syscall.SIGSTOP)
	stopped := 0
	for _, pid := range children {
		for !ended(state(pid)) && state(pid) != "T" {
			<-time.After(time.Millisecond)
		}
		if state(pid) == "T" {
			stopped++
		}
	}
	if stopped == 0 { // some come and go, such as those that vacuum
		t.Error("no process of a Postgres was stopped")
	}
	s.Crash()
	for _, pid := range children {
		if got := state(pid); !ended(got) {
			t.Errorf("process %d is in state %s after a crash", pid, got)
		}
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Errorf("the data did not outlive the crash: %v", err)
	}
}

func ended(state string) bool { return state == "" || state == "Z" }

// state returns the letter that ps has for a process, empty when it is gone.
func state(pid int) string {
	out, _ := exec.Command("ps", "-o", "s=", "-p", strconv.Itoa(pid)).Output() // fails when it is gone
	return strings.TrimSpace(string(out))
}

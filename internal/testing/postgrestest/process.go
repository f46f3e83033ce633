package postgrestest

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal postgres: %v", err)
	}
}

// KillOne ends one of the processes that serve the store and returns when the server, which
// then ends its other processes too, has started again. The server notices a moment later and
// answers until then from memory that it is about to lose, so an answer alone does not
// show that it started again.
func (s *Server) KillOne() {
	s.t.Helper()
	before := s.family()[1:]
	pid := s.Do("SELECT pid FROM pg_stat_activity WHERE application_name = 'weir' LIMIT 1")[0][0].(int32)
	if err := syscall.Kill(int(pid), syscall.SIGKILL); err != nil {
		s.t.Fatalf("kill a process of postgres: %v", err)
	}
	ended(before)
	s.Await()
}

// ended returns when none of the processes runs.
func ended(processes []int) {
	for _, pid := range processes {
		for running(pid) {
			<-time.After(time.Millisecond)
		}
	}
}

func (s *Server) signalAll(sig syscall.Signal) {
	for _, pid := range s.family() {
		_ = syscall.Kill(pid, sig) // it may have ended by itself
	}
}

// family returns the server's process and its children, the parent first: then it
// starts no more of them.
func (s *Server) family() []int {
	parent := s.cmd.Process.Pid
	family := []int{parent}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		s.t.Fatalf("list processes: %v", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var pid, of int
		if n, _ := fmt.Sscan(lines.Text(), &pid, &of); n == 2 && of == parent {
			family = append(family, pid)
		}
	}
	return family
}

// running reports whether the process runs; one that ended and was not waited for
// does not.
func running(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && !bytes.HasPrefix(bytes.TrimSpace(out), []byte("Z"))
}

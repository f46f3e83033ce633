package postgrestest

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"syscall"
)

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal postgres: %v", err)
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

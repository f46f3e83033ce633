package servers

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// Crash ends all processes of the server at once and returns when they are gone. Its data stays, and a server
// that ended before stays so.
func (s *Server) Crash() {
	if s.Process == nil {
		return
	}
	select {
	case <-s.Done():
		s.Process.Kill() // what it left of its group
		return
	default:
	}
	children := s.Children()
	s.signal(syscall.SIGKILL, children)
	<-s.Done()
	AwaitEnd(children)
}

// SignalAll sends a signal to all processes of the server.
func (s *Server) SignalAll(sig syscall.Signal) { s.signal(sig, s.Children()) }

// signal reaches the parent first: from then on it starts no more children.
func (s *Server) signal(sig syscall.Signal, children []int) {
	s.Signal(sig)
	for _, pid := range children {
		_ = syscall.Kill(pid, sig) // it may have ended by itself
	}
}

// Children returns the processes of a server that a signal to its process group does not reach.
func (s *Server) Children() (children []int) {
	if !s.spec.sessions {
		return nil
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output() //nolint:noctx // returns at once
	if err != nil {
		return nil // they end by themselves, a moment after their parent
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var pid, parent int
		if n, _ := fmt.Sscan(lines.Text(), &pid, &parent); n == 2 && parent == s.PID() {
			children = append(children, pid)
		}
	}
	return children
}

// AwaitEnd returns when none of the processes runs. One that ended and was not waited for does not run.
func AwaitEnd(processes []int) {
	for _, pid := range processes {
		for runs(pid) {
			<-time.After(time.Millisecond)
		}
	}
}

func runs(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output() //nolint:noctx // returns at once
	return err == nil && !bytes.HasPrefix(bytes.TrimSpace(out), []byte("Z"))
}

package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Path string   // of the program
	Args []string // without the program's name
	Env  []string // all of the environment, as KEY=value
	Log  string   // file that standard output and error are appended to
	// Credential is the user that it runs as; nil for the user of this process.
	Credential *syscall.Credential
}

// A Process is one running child with everything it started itself.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts a process. The caller has to stop it.
func Start(s Spec) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()                      // the child has its own descriptor
	cmd := exec.Command(s.Path, s.Args...) //nolint:noctx // a context can only kill one process; Stop ends the group
	cmd.Env, cmd.Stdout, cmd.Stderr = s.Env, log, log
	cmd.SysProcAttr = ownGroup()
	cmd.SysProcAttr.Credential = s.Credential
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the outcome is read from ProcessState
	}()
	return p, nil
}

// PID returns the process's id, which is also that of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode returns how the process ended, in the way of a shell: 128 + the
// signal when one killed it. It must not be called before Done is closed.
func (p *Process) ExitCode() int {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal to the process and everything it started. A process
// that has ended is not an error.
func (p *Process) Signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.PID(), sig)
}

// Stop asks the process to end, kills it when it has not after grace, and
// returns when it is gone.
func (p *Process) Stop(grace time.Duration) {
	p.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	p.Kill()
}

// Kill ends the process and everything it started, and returns when it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

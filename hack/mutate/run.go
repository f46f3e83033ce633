package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	// errStopped ends a run of the command.
	errStopped = errors.New("interrupted")

	// errTimedOut says that no test failed before the bound of the run. Only somebody who
	// looks knows whether the mutant hangs or the machine was slow.
	errTimedOut = errors.New("timed out")
)

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// run runs tests without the copy that has the number, and names the first that failed, or
// says how the run ended. The file notes then has the numbers of the copies that were
// reached, the file out what was printed. Processes that are left behind are killed.
// The error is errStopped or errTimedOut, or says why the tests could not be run.
func (s *suite) run(b *binary, without int, stop <-chan os.Signal, args ...string) (failed string, err error) {
	c := exec.Command(b.path, append(args, "-test.timeout", s.timeout.String())...) //nolint:noctx // it is killed below
	c.Dir = b.dir
	scratch := s.file("t") // sockets below it have short names
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	out, err := os.Create(s.file("out")) // a file: a pipe stays open in what is left behind
	if err != nil {
		return "", err
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	c.Env = append(os.Environ(), "TMPDIR="+scratch, "MUTANT="+strconv.Itoa(without), "MUTANT_NOTES="+s.file("notes"))
	_ = os.Remove(s.file("notes"))
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // processes that leave the group stay in the session
	if err := c.Start(); err != nil {
		return "", err
	}
	defer killSession(c.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(s.timeout + 10*time.Second): // the bound of the tests themselves did not end them
		_ = c.Process.Kill()
		err = <-ended
		return "", errors.Join(errTimedOut, err)
	case <-stop:
		_ = c.Process.Kill()
		return "", errors.Join(errStopped, <-ended)
	}
	if exit := (*exec.ExitError)(nil); err == nil {
		return "", nil
	} else if !errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w", b.path, err)
	}
	said, err := os.ReadFile(out.Name())
	if name := failure.FindSubmatch(said); name != nil {
		return string(name[1]), err
	}
	if bytes.Contains(said, []byte("panic: test timed out after ")) {
		return "", errTimedOut
	}
	return c.ProcessState.String(), err // such as a panic in another goroutine
}

// killSession kills all processes of a session.
func killSession(leader int) {
	_ = syscall.Kill(-leader, syscall.SIGKILL)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // none where it is not Linux
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it ended meanwhile
		}
		// The name of the program is in parentheses and may hold anything; then come its
		// state, parent, group and session.
		after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(after) > 3 && after[3] == strconv.Itoa(leader) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

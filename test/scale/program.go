package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/weir-dev/weir/internal/freeport"
)

// memory is what the controller's Deployment allows it, and heapGoal what the Go runtime
// keeps to by itself then.
const (
	memory   = 512 << 20
	heapGoal = memory / 10 * 8
)

// A group is a cgroup with a limit on memory.
type group struct{ dir string }

// newGroup makes a cgroup below the one of the machine. It returns an error where that is
// not allowed.
func newGroup(name string) (*group, error) {
	root, limit := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		root, limit = filepath.Join(root, "memory"), "memory.limit_in_bytes" // version 1
	}
	g := &group{dir: filepath.Join(root, name)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(g.dir, limit), []byte(strconv.Itoa(memory)), 0o644); err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// remove removes the group, whose processes have ended.
func (g *group) remove() {
	if g != nil {
		_ = os.Remove(g.dir)
	}
}

// writeProgram writes the program of a replica: the controller in a cgroup of its own, or
// only with the runtime's goal where there is none.
func (w *world) writeProgram(i int) error {
	c := &w.controllers[i]
	port, err := freeport.Port()
	if err != nil {
		return err
	}
	c.profile = "127.0.0.1:" + strconv.Itoa(port)
	enter := ""
	w.limited = fmt.Sprintf("a cgroup of %d MiB", memory>>20)
	if c.group, err = newGroup(fmt.Sprintf("weir-scale-%d-%d", os.Getpid(), i)); err == nil {
		enter = fmt.Sprintf("echo $$ >%s/cgroup.procs\n", c.group.dir)
	} else {
		w.limited = fmt.Sprintf("GOMEMLIMIT alone (%d MiB), because no cgroup could be made: %v", heapGoal>>20, errors.Unwrap(err))
	}
	c.program = filepath.Join(w.dir, fmt.Sprintf("controller-%d", i))
	script := fmt.Sprintf("#!/bin/sh\n%sexport GOMEMLIMIT=%d\nexec %s \"$@\" --profile-bind-address=%s\n",
		enter, heapGoal, filepath.Join(w.root, "bin", "controller"), c.profile)
	return os.WriteFile(c.program, []byte(script), 0o755) //nolint:gosec // a program
}

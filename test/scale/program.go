package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/weir-dev/weir/internal/testing/cgroup"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

// usualMemory is what the controller's Deployment allows it, in MiB.
const usualMemory = 512

// writeProgram writes the program of a replica: the controller in a cgroup of its own, or
// only with the runtime's goal where there is none.
func (w *world) writeProgram(i int) error {
	c := &w.controllers[i]
	port, err := freeport.Port()
	if err != nil {
		return err
	}
	c.profile = "127.0.0.1:" + strconv.Itoa(port)
	memory := int64(w.memory) << 20
	heapGoal := memory / 10 * 8 // as the controller's Deployment states it
	enter := ""
	w.limited = fmt.Sprintf("a cgroup of %d MiB", w.memory)
	if c.group, err = cgroup.New(fmt.Sprintf("weir-scale-%d-%d", os.Getpid(), i), memory); err == nil {
		enter = c.group.Enter() + "\n"
	} else {
		w.limited = fmt.Sprintf("GOMEMLIMIT alone (%d MiB), because no cgroup could be made: %v", heapGoal>>20, errors.Unwrap(err))
	}
	c.program = filepath.Join(w.dir, fmt.Sprintf("controller-%d", i))
	script := fmt.Sprintf("#!/bin/sh\n%sexport GOMEMLIMIT=%d\nexec %s \"$@\" --profile-bind-address=%s\n",
		enter, heapGoal, filepath.Join(w.root, "bin", "controller"), c.profile)
	return os.WriteFile(c.program, []byte(script), 0o755)
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/testing/cgroup"
)

// mostMemory is the part of what it is allowed that a process may take.
const mostMemory = 0.85

// A limited is a process with a limit on its memory.
type limited struct {
	name  string
	limit int64
	group *cgroup.Group // nil where none can be made
	pid   func() int    // 0 while it does not run
	began int           // its process id when everything served

	mu   sync.Mutex
	peak int64 // since the last reset
}

// newLimited makes a program that runs another one with a limit on its memory.
func newLimited(dir, name, program string, limit int64) (l *limited, script string, noGroup error, err error) {
	l = &limited{name: name, limit: limit}
	enter := ""
	if l.group, noGroup = cgroup.New(fmt.Sprintf("weir-attack-%d-%s", os.Getpid(), name), limit); noGroup == nil {
		enter = l.group.Enter() + "\n"
	} else {
		enter = fmt.Sprintf("export GOMEMLIMIT=%d\n", limit/10*8) // as the program does by itself in a container
	}
	script = filepath.Join(dir, name)
	text := fmt.Sprintf("#!/bin/sh\n%sexec %s \"$@\"\n", enter, program)
	return l, script, noGroup, os.WriteFile(script, []byte(text), 0o755)
}

// look takes a sample.
func (l *limited) look() {
	used, err := l.used()
	if err != nil {
		return // it is not there
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peak = max(l.peak, used)
}

func (l *limited) used() (int64, error) {
	if l.group != nil {
		return l.group.WorkingSet()
	}
	return residentOf(l.pid())
}

// take returns the peak since the last call.
func (l *limited) take() int64 {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	peak := l.peak
	l.peak = 0
	return peak
}

// problem returns what is wrong with a process that took as much at most.
func (l *limited) problem(peak int64) error {
	switch pid := l.pid(); {
	case pid != l.began:
		return fmt.Errorf("%s was started again: process %d is now %d", l.name, l.began, pid)
	case float64(peak) > mostMemory*float64(l.limit):
		return fmt.Errorf("%s took %d of %d MiB", l.name, peak>>20, l.limit>>20)
	}
	return nil
}

// residentOf returns the resident memory of a process.
func residentOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm has %d fields", pid, len(fields))
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// sample looks at all processes until ctx is done.
func (w *world) sample(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, l := range w.limits() {
			l.look()
		}
	}
}

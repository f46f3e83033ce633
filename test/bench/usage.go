package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

// tick is the unit in which Linux counts processor time, for every architecture that Go has.
const tick = 10 * time.Millisecond

// processorTime returns what the processes, and what they started, have used of the
// processors so far.
func processorTime(pids []int) (used time.Duration, err error) {
	for _, pid := range pids {
		took, err := timeOf(strconv.Itoa(pid))
		if err != nil {
			return 0, err
		}
		used += took
		children, err := childrenOf(pid)
		if err != nil {
			return 0, err
		}
		for _, child := range children {
			if took, err := timeOf(strconv.Itoa(child)); err == nil { // it has not ended meanwhile
				used += took
			}
		}
	}
	return used, nil
}

// childrenOf returns the processes that a process started and that have not ended.
func childrenOf(pid int) (children []int, err error) {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(list)) {
		id, failed := strconv.Atoi(child)
		children, err = append(children, id), errors.Join(err, failed)
	}
	return children, err
}

// processClock returns what a process has used so far, to the nanosecond and without what it started:
// processorTime counts ticks, which are much of a short turn.
func processClock(pid int) (time.Duration, error) {
	const ofProcess = 2                 // the kernel's CPUCLOCK_SCHED of a whole process
	clock := int32(^pid)<<3 | ofProcess // as clock_getcpuclockid(3) makes it
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("process %d does not say what it used: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// timeOf returns what a process has used, and those of its children that ended.
func timeOf(pid string) (used time.Duration, err error) {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name, which may hold anything
	fields := strings.Fields(rest)
	const userTime, childrenTime = 11, 15
	if len(fields) < childrenTime {
		return 0, fmt.Errorf("process %s does not say what it used", pid)
	}
	for _, field := range fields[userTime:childrenTime] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("process %s does not say what it used: %w", pid, err)
		}
		used += time.Duration(ticks) * tick
	}
	return used, nil
}

var callsOf = regexp.MustCompile(`(?m)^cmdstat_\S+?:calls=(\d+)`)

// commandsOf returns how many commands a Redis has carried out so far, those that scripts
// called included.
func commandsOf(client *goredis.Client) (n int64, err error) {
	stats, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		return 0, err
	}
	for _, found := range callsOf.FindAllStringSubmatch(stats, -1) {
		calls, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil {
			return 0, err
		}
		n += calls
	}
	return n, nil
}

// A residence is what a process has in memory, in bytes.
type residence struct {
	resident float64
	own      float64 // of that, not pages of the program's file, which a node holds once
}

// larger returns the larger figures of two residences.
func (r residence) larger(o residence) residence {
	return residence{resident: max(r.resident, o.resident), own: max(r.own, o.own)}
}

func residenceOf(pid int) (r residence, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return r, err
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
		switch name {
		case "VmRSS":
			r.resident = kib * 1024
		case "RssAnon":
			r.own = kib * 1024
		}
	}
	if r.resident == 0 {
		return r, fmt.Errorf("process %d does not say how large it is", pid)
	}
	return r, nil
}

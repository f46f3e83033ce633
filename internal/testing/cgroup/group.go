package cgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Group is a cgroup with a limit of memory.
type Group struct {
	dir   string
	files files
}

// files are names in a version of cgroups.
type files struct {
	limit, events string
	peaks         []string // whose sum is the most memory that was in use
	used          []string // whose sum is in use now
	inactive      string   // in memory.stat: what of it is of files and was not used lately
	sockets       string   // the limit of memory for sockets, where that is counted apart
}

var (
	version2 = files{
		limit: "memory.max", events: "memory.events",
		peaks: []string{"memory.peak"},
		used:  []string{"memory.current"}, inactive: "inactive_file ",
	}
	version1 = files{
		limit: "memory.limit_in_bytes", events: "memory.oom_control",
		peaks: []string{"memory.max_usage_in_bytes", "memory.kmem.tcp.max_usage_in_bytes"},
		used:  []string{"memory.usage_in_bytes", "memory.kmem.tcp.usage_in_bytes"}, inactive: "total_inactive_file ",
		sockets: "memory.kmem.tcp.limit_in_bytes",
	}
)

// New makes a group below that of the machine. It returns an error where that is not allowed.
func New(name string, limit int64) (*Group, error) {
	root, names := "/sys/fs/cgroup", version2
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		root, names = filepath.Join(root, "memory"), version1
	}
	g := &Group{dir: filepath.Join(root, name), files: names}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	for _, file := range []string{names.limit, names.sockets} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
			g.Remove()
			return nil, err
		}
	}
	return g, nil
}

// Enter returns a line of a shell script by which the shell, and what it executes, enters the
// group.
func (g *Group) Enter() string { return "echo $$ >" + filepath.Join(g.dir, "cgroup.procs") }

// Peak returns the most bytes that were in use at once.
func (g *Group) Peak() (int64, error) { return g.sum(g.files.peaks) }

// WorkingSet returns how many bytes are in use, as kubelets count them: without what is kept of
// files and was not used lately.
func (g *Group) WorkingSet() (int64, error) {
	used, err := g.sum(g.files.used)
	if err != nil {
		return 0, err
	}
	stat, err := os.ReadFile(filepath.Join(g.dir, "memory.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(stat)) {
		if value, ok := strings.CutPrefix(line, g.files.inactive); ok {
			inactive, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return max(0, used-inactive), err
		}
	}
	return 0, fmt.Errorf("memory.stat does not count %s", strings.TrimSpace(g.files.inactive))
}

func (g *Group) sum(files []string) (sum int64, err error) {
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(g.dir, file))
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += n
	}
	return sum, nil
}

// Kills returns how many processes were killed for want of memory.
func (g *Group) Kills() (int64, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, g.files.events))
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			return strconv.ParseInt(n, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s does not count kills", g.files.events)
}

// Remove removes the group, whose processes have ended.
func (g *Group) Remove() {
	if g != nil {
		_ = os.Remove(g.dir)
	}
}

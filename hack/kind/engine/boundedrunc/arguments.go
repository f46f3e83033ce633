package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// specification returns the file that runc is about to read capabilities from:
// the bundle's of a new container, or that of a process in a running one. It is
// empty for runc's other commands.
func specification(args []string) string {
	at := slices.IndexFunc(args, func(arg string) bool {
		return slices.Contains([]string{"create", "run", "restore", "exec"}, arg)
	})
	if at < 0 {
		return ""
	}
	if args[at] == "exec" {
		return option(args[at+1:], "process", "p")
	}
	return filepath.Join(option(args[at+1:], "bundle", "b"), "config.json")
}

// option returns the value of an option in the forms that runc accepts.
func option(args []string, long, short string) string {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch strings.TrimLeft(name, "-") {
		case long, short:
			if !strings.HasPrefix(name, "-") {
				continue
			}
			if joined {
				return value
			}
			if i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}

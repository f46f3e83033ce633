package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
)

// standard is the path by which the standard library is called. It is a module like others,
// whose version is that of Go.
const standard = "std"

// A module is one of those that a program contains.
type module struct {
	path, version string
	sum           string   // as in go.sum; empty for the main module and the standard library
	main          bool     // it has the program itself
	root          string   // its directory
	packages      []string // directories of its packages that are in the program
	licences      []licence
}

// listed is what the go command says of a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *listedModule
}

type listedModule struct {
	Path, Version, Dir string
	Main               bool
	Replace            *listedModule
}

// modules returns those that the program contains on an architecture, ordered by path. The
// version of the main module is that of the program.
func (p *program) modules(ctx context.Context, architecture string) ([]*module, error) {
	out, err := p.ask(ctx, architecture, "list", "-deps", "-tags", p.tags, "-json=Dir,Standard,Module", p.pkg)
	if err != nil {
		return nil, err
	}
	env, err := p.ask(ctx, architecture, "env", "GOVERSION", "GOROOT")
	if err != nil {
		return nil, err
	}
	version, root, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	found := map[string]*module{standard: {path: standard, version: version, root: root}}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		of := standard
		if l.Module != nil {
			of = p.note(found, l.Module)
		} else if !l.Standard {
			return nil, fmt.Errorf("the package in %s is of no module, so its licence is not known", l.Dir)
		}
		found[of].packages = append(found[of].packages, l.Dir)
	}
	all := make([]*module, 0, len(found))
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *module) int { return cmp.Compare(a.path, b.path) })
	return all, nil
}

// note remembers a module, and returns its path.
func (p *program) note(found map[string]*module, l *listedModule) string {
	m := &module{path: l.Path, version: l.Version, main: l.Main, root: l.Dir}
	if m.main {
		m.version = p.version
	}
	if r := l.Replace; r != nil && r.Version != "" { // else it is a directory, which has no version
		m.path, m.version = r.Path, r.Version
	}
	if found[m.path] == nil {
		found[m.path] = m
	}
	return m.path
}

// ask runs a go command that prints something, for what build builds.
func (p *program) ask(ctx context.Context, architecture string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = p.source
	command.Env = p.environment(architecture)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s for %s/%s: %w", args[0], cmp.Or(p.system, "linux"), architecture, err)
	}
	return out, nil
}

// compare returns an error when a binary was built from other modules than these, and takes
// their sums from it. The go command wrote into the binary what it is made of.
func compare(all []*module, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("what the program is made of: %w", err)
	}
	return agree(all, info)
}

func agree(all []*module, info *debug.BuildInfo) error {
	missing := map[string]*debug.Module{standard: {Path: standard, Version: info.GoVersion}}
	for _, dep := range info.Deps {
		if r := dep.Replace; r != nil && r.Version != "" && r.Version != "(devel)" {
			dep = r
		}
		missing[dep.Path] = dep
	}
	var errs []error
	for _, m := range all {
		dep := missing[m.path]
		delete(missing, m.path)
		switch {
		case m.main:
			if m.path != info.Main.Path {
				errs = append(errs, fmt.Errorf("%s is listed as the main module, and the program's is %s", m.path, info.Main.Path))
			}
		case dep == nil:
			errs = append(errs, fmt.Errorf("%s %s is listed, and the program does not contain it", m.path, m.version))
		case dep.Version != m.version:
			errs = append(errs, fmt.Errorf("%s is listed as %s, and the program contains %s", m.path, m.version, dep.Version))
		default:
			m.sum = dep.Sum
		}
	}
	for path, dep := range missing {
		errs = append(errs, fmt.Errorf("the program contains %s %s, which is not listed", path, dep.Version))
	}
	return errors.Join(errs...)
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
)

// versionVariable is where a program of Weir finds its version; other programs have no
// such variable, and the linker then passes over it.
const versionVariable = "github.com/weir-dev/weir/internal/version.built"

// program says what is built.
type program struct {
	source  string // directory of the module
	pkg     string // main package
	tags    string
	version string
	system  string // that it runs on, Linux where it is empty
}

// base is the name of the program, which that of its package's directory is.
func (p *program) base() string { return path.Base(p.pkg) }

// environment is that of go commands for an architecture.
func (p *program) environment(architecture string) []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+cmp.Or(p.system, "linux"), "GOARCH="+architecture, "GOAMD64=v1", "GOARM64=v8.0")
}

// build writes a static binary for Linux on an architecture to a file.
func (p *program) build(ctx context.Context, architecture, file string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", p.tags,
		"-ldflags", "-s -w -buildid= -X "+versionVariable+"="+p.version, "-o", file, p.pkg)
	command.Dir = p.source
	command.Env = p.environment(architecture)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build %s for linux/%s: %w", p.pkg, architecture, err)
	}
	return nil
}

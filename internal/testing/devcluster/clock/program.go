package clock

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unsafe"
)

func store(page []byte, word [8]byte) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(&page[0])), *(*int64)(unsafe.Pointer(&word)))
}

// clockOfTime is added to package time.
const clockOfTime = `
// wallClock is the offset that a file of the environment holds, in nanoseconds.
var wallClock = func() *int64 {
	name, ok := syscall.Getenv("` + Variable + `")
	if !ok {
		return new(int64)
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("open " + name + ": " + err.Error())
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("map " + name + ": " + err.Error())
	}
	syscall.Close(fd)
	return (*int64)(unsafe.Pointer(&page[0]))
}()

func offWallClock(sec int64, nsec int32) (int64, int32) {
	offset := *wallClock
	sec += offset / 1e9
	n := int64(nsec) + offset%1e9
	switch {
	case n < 0:
		return sec - 1, int32(n + 1e9)
	case n >= 1e9:
		return sec + 1, int32(n - 1e9)
	}
	return sec, int32(n)
}
`

// Program builds a package of the checkout whose time.Now reads the clock that the
// environment names, into dir/name, and returns its path. A static program reads the
// time without a library that could be replaced. It takes up to two minutes.
func Program(ctx context.Context, checkout, pkg, dir, name string) (string, error) {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed, err := change(string(source))
	if err != nil {
		return "", fmt.Errorf("%s: %w", original, err)
	}
	replacement := filepath.Join(dir, "time.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	program := filepath.Join(dir, name)
	err = errors.Join(os.WriteFile(replacement, []byte(changed), 0o644), os.WriteFile(overlayFile, overlay, 0o644))
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-overlay", overlayFile, "-o", program, pkg)
	build.Dir, build.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return program, nil
}

// change puts the clock into the source of package time.
func change(source string) (string, error) {
	const imports, read = "_ \"unsafe\" // for go:linkname\n", "sec, nsec, mono := runtimeNow()\n"
	if strings.Count(source, imports) != 1 || strings.Count(source, read) != 1 {
		return "", errors.New("time.Now of this Go version is written differently")
	}
	source = strings.Replace(source, imports, "\"syscall\"\n\t\"unsafe\"\n", 1)
	return strings.Replace(source, read, read+"\tsec, nsec = offWallClock(sec, nsec)\n", 1) + clockOfTime, nil
}

// At returns a script in dir that runs a program with the clock.
func (c *Clock) At(program, dir, name string) (string, error) {
	script := filepath.Join(dir, name)
	content := fmt.Sprintf("#!/bin/sh\nexport %s=%s\nexec %s \"$@\"\n", Variable, c.file, program)
	return script, os.WriteFile(script, []byte(content), 0o755)
}

//go:embed preload.c.txt
var preload []byte

// Library builds what gives a program of the C library the clock that the environment
// names, into dir, and returns the variable that loads it. It needs a C compiler.
func Library(ctx context.Context, dir string) (string, error) {
	source, library := filepath.Join(dir, "preload.c"), filepath.Join(dir, "preload.so")
	if err := os.WriteFile(source, preload, 0o644); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", library, source)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w: %s", err, out)
	}
	return "LD_PRELOAD=" + library, os.Chmod(library, 0o755)
}

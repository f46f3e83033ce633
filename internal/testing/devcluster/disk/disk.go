package disk

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed preload.c.txt
var preload []byte

// Library builds what a process has to load, into dir, and returns its path. It needs a
// C compiler.
func Library(ctx context.Context, dir string) (string, error) {
	source, library := filepath.Join(dir, "disk.c"), filepath.Join(dir, "disk.so")
	if err := os.WriteFile(source, preload, 0o644); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", library, source)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w: %s", err, out)
	}
	return library, os.Chmod(library, 0o755)
}

// A Disk is what processes write their files to.
type Disk struct{ file string }

// New returns a disk with room, whose state is kept in a file that processes of any user
// can read.
func New(file string) (*Disk, error) {
	d := &Disk{file: file}
	return d, errors.Join(os.WriteFile(file, []byte{0}, 0o644), os.Chmod(file, 0o644))
}

// Environment returns what a process that has the disk finds in its environment, beside
// LD_PRELOAD, which names the library.
func (d *Disk) Environment() []string { return []string{"DISK=" + d.file} }

// SetFull makes every later write fail, or none.
func (d *Disk) SetFull(full bool) error {
	f, err := os.OpenFile(d.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	state := []byte{0}
	if full {
		state[0] = 1
	}
	_, err = f.WriteAt(state, 0)
	return errors.Join(err, f.Close())
}

package nodeimage

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed furnish.sh
var furnishScript string

// furnish puts onto the root file system what makes it a node: kind's static
// files, the programs, and the settings of kind's Dockerfile.
func (w *workshop) furnish(ctx context.Context) error {
	if err := w.copyStaticFiles(); err != nil {
		return err
	}
	for _, place := range []struct {
		dir      string
		programs []string
	}{
		{"usr/local/bin", []string{"containerd", "containerd-shim-runc-v2", "ctr"}},
		{"opt/cni/bin", []string{"ptp", "loopback", "host-local", "portmap"}},
	} {
		for _, program := range place.programs {
			if err := w.place(filepath.Join(w.programs, program), filepath.Join(place.dir, program), 0o755); err != nil {
				return err
			}
		}
	}
	if err := w.place(w.kube, "usr/bin/kube", 0o755); err != nil {
		return err
	}
	images, err := w.componentImages(ctx)
	if err != nil {
		return err
	}
	script := exec.CommandContext(ctx, "chroot", w.root, "bash", "-euo", "pipefail", "-s", images["kube-apiserver"].tag, images["pause"].name())
	script.Stdin = strings.NewReader(furnishScript)
	if out, err := script.CombinedOutput(); err != nil {
		return fmt.Errorf("furnish.sh: %w: %s", err, lastLines(string(out)))
	}
	return nil
}

// copyStaticFiles copies what kind's module carries for its base image. The
// modes are those of its Dockerfile: what is in a directory of programs is
// executable, everything else is not.
func (w *workshop) copyStaticFiles() error {
	files := filepath.Join(w.kind, "images/base/files")
	return filepath.WalkDir(files, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(files, path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if filepath.Base(filepath.Dir(path)) == "bin" {
			mode = 0o755
		}
		return w.place(path, name, mode)
	})
}

// place copies a file to a name below the root file system.
func (w *workshop) place(from, name string, mode fs.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	target := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(target, content, mode); err != nil {
		return err
	}
	return os.Chmod(target, mode) // whatever the umask is
}

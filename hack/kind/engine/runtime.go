package engine

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/weir-dev/weir/hack/kind/machine"
)

// boundedRuntime builds the wrapper of runc into dir and returns its path, or
// nothing where this machine holds every capability.
func boundedRuntime(ctx context.Context, dir string) (string, error) {
	held, err := machine.Held()
	if err != nil {
		return "", err
	}
	known, err := machine.Known()
	if err != nil {
		return "", err
	}
	if known&^held == 0 {
		return "", nil
	}
	checkout, err := machine.Checkout(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "boundedrunc")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./hack/kind/engine/boundedrunc")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build boundedrunc: %w: %s", err, bytes.TrimSpace(out))
	}
	return path, nil
}

package machine

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

const module = "github.com/weir-dev/weir"

// Checkout returns the root of Weir's source tree: the node's programs are
// built from the modules that are pinned there.
func Checkout(ctx context.Context) (string, error) {
	return ModuleDir(ctx, module)
}

// ModuleDir returns where the source of a module that Weir requires lies.
func ModuleDir(ctx context.Context, path string) (string, error) {
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", path)
	command.Stderr = &complaint
	out, err := command.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("find the source of module %s; run this inside a checkout of %s: %w: %s",
			path, module, err, bytes.TrimSpace(complaint.Bytes()))
	}
	if dir == "" {
		return "", fmt.Errorf("the source of module %s is not on this machine; run `go mod download`", path)
	}
	return dir, nil
}

package devcluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// QuickLeaderElection are arguments of a controller whose successor leads soon
// after it was killed.
var QuickLeaderElection = []string{
	"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
}

// Apply applies manifests with kubectl, as a user would.
func (c *Cluster) Apply(ctx context.Context, manifests []byte) error {
	_, err := kubectl(ctx, c.control.assets, manifests, "--kubeconfig="+c.Kubeconfig, "apply", "--server-side", "-f", "-")
	return err
}

// kubectl runs kubectl with input as its standard input.
func kubectl(ctx context.Context, assets string, input []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(assets, "kubectl"), args...)
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("kubectl %s: %w\n%s", args[len(args)-1], err, problems.String())
	}
	return out.Bytes(), nil
}
